#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

class Dataset;

/// Samples as named tensors with a leading batch axis, in the batch's own memory. A batch always has `capacity` rows.
/// If it has fewer real samples, the other rows have weight 0 and copy a real sample, so that layers that use value
/// ranges (a maximum) see only values of the data. A new batch is all zero.
class Batch {
 public:
  Batch(std::span<const Field> fields, std::size_t capacity);
  /// The same in device memory, as the destination of copies from the host.
  Batch(std::span<const Field> fields, std::size_t capacity, DeviceContext& context);

  /// A batch of sample numbers of `data` without values, for a device that holds the data. Its tensors have no memory.
  static Batch of_samples(const Dataset& data, std::size_t capacity);

  /// A batch in pinned host memory of `context`.
  static Batch staging(std::span<const Field> fields, std::size_t capacity, DeviceContext& context);

  /// Memory of a batch with values, in bytes.
  [[nodiscard]] static std::size_t bytes_of(std::span<const Field> fields, std::size_t capacity);

  /// Copies `other`, which has the same fields and capacity, in the order of `stream`.
  void copy_from(const Batch& other, DeviceContext& context, Stream& stream);
  /// The same between batches in host memory; done on return.
  void copy_from(const Batch& other);

  /// Throws InputError that lists the names if there is no such field.
  [[nodiscard]] const Tensor& field(std::string_view name) const;
  [[nodiscard]] const Tensor& input() const { return field("input"); }
  [[nodiscard]] const Tensor& target() const { return field("target"); }
  [[nodiscard]] const Tensor& weights() const noexcept { return weights_; }  ///< float32 (capacity)
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t real() const noexcept { return real_; }  ///< rows that hold real samples

  /// The index of row 0 in the global batch, set by the loader: a sample of a step has the same index on any number of
  /// ranks. 0 if it was not set.
  [[nodiscard]] std::size_t first_row() const noexcept { return first_row_; }
  void set_first_row(std::size_t place) noexcept { first_row_ = place; }

  /// Whether the memory is pinned: see staging.
  [[nodiscard]] bool pinned() const noexcept { return pinned_; }

  /// For a batch in host memory: sets the weights to 1 for the first `real` rows, and to 0 for the rest.
  void set_real(std::size_t real);
  /// For a batch with values in host memory: sets the weights of all rows after the real ones to 0; the dataset may
  /// have written others.
  void clear_padding_weights();
  /// Sets only real(), for a batch in device memory: its weights are written in the order of a stream.
  void note_real(std::size_t real) noexcept { real_ = real; }

  /// The dataset of the sample numbers; null: the batch has values.
  [[nodiscard]] const Dataset* source() const noexcept { return source_; }
  /// For a batch of sample numbers: sets the sample of each row; the first `real` rows are real. `rows` has capacity()
  /// elements.
  void set_samples(std::span<const std::uint64_t> rows, std::size_t real);
  /// The data sent to the device: the number of real rows, then the sample of each row.
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
