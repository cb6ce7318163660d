#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/field.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

class Dataset;

/// Some samples as named tensors with a leading batch axis, in memory of its own. `capacity` rows are always there; a
/// batch with fewer real samples has weight 0 in the rest, which are copies of some real sample, so that layers that
/// look at values (a largest one, a range) see none that the data does not have. A new batch is all zero.
class Batch {
 public:
  Batch(std::span<const Field> fields, std::size_t capacity);
  /// The same in a device's memory, to copy the host's batches to.
  Batch(std::span<const Field> fields, std::size_t capacity, DeviceContext& context);

  /// One that names samples of `data` and has no values: for a device that holds the data. Its tensors have no memory.
  static Batch of_samples(const Dataset& data, std::size_t capacity);

  /// The same in memory of the host that `context` copies from by itself.
  static Batch staging(std::span<const Field> fields, std::size_t capacity, DeviceContext& context);

  /// What it takes of memory.
  [[nodiscard]] static std::size_t bytes_of(std::span<const Field> fields, std::size_t capacity);

  /// Becomes what `other`, of the same fields and capacity, is; in the order of `stream`.
  void copy_from(const Batch& other, DeviceContext& context, Stream& stream);
  /// The same between batches of the host, at once.
  void copy_from(const Batch& other);

  /// Throws InputError, listing the names there are.
  [[nodiscard]] const Tensor& field(std::string_view name) const;
  [[nodiscard]] const Tensor& input() const { return field("input"); }
  [[nodiscard]] const Tensor& target() const { return field("target"); }
  [[nodiscard]] const Tensor& weights() const noexcept { return weights_; }  ///< float32 (capacity)
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t real() const noexcept { return real_; }  ///< rows that hold samples of their own

  /// The place of row 0 in the global batch, as the loader said: a sample of a step has the same place on any number of
  /// ranks. 0 where nobody said.
  [[nodiscard]] std::size_t first_row() const noexcept { return first_row_; }
  void set_first_row(std::size_t place) noexcept { first_row_ = place; }

  /// Whether a device copies from it by itself: see staging.
  [[nodiscard]] bool pinned() const noexcept { return pinned_; }

  /// Of a batch on the host. Sets the weights: 1 for the first `real` rows, 0 for the rest.
  void set_real(std::size_t real);
  /// Of a batch on the host that has values: no row beyond the real ones weighs anything, whatever weights the dataset
  /// has written.
  void clear_padding_weights();
  /// Of a batch on a device, whose weights come in the order of a stream.
  void note_real(std::size_t real) noexcept { real_ = real; }

  /// Whose samples it names; null: it has values.
  [[nodiscard]] const Dataset* source() const noexcept { return source_; }
  /// Of a batch that names samples: those of its rows, of which the first `real` are real. `rows` has capacity()
  /// places.
  void set_samples(std::span<const std::uint64_t> rows, std::size_t real);
  /// What the device is told: how many rows are real, and the sample of each.
  [[nodiscard]] std::span<const std::uint64_t> request() const noexcept { return request_; }

 private:
  using Allocate = std::function<Buffer(std::size_t bytes)>;
  Batch(std::span<const Field> fields, std::size_t capacity, const Allocate& allocate);

  void check_alike(const Batch& other) const;

  std::vector<std::string> names_;
  std::vector<Tensor> tensors_;
  Tensor weights_;
  std::size_t capacity_, real_ = 0, first_row_ = 0;
  Buffer memory_;
  bool pinned_ = false;
  const Dataset* source_ = nullptr;
  std::vector<std::uint64_t> request_;
};

}  // namespace ronda
