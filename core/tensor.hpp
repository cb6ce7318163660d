#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/dtype.hpp>
#include <ronda/core/stream.hpp>

namespace ronda {

/// Extents of a tensor, outermost first; activations are (N, H, W, C) or (N, features), weights as PyTorch names them:
/// (out, in) and (out, in, H, W). At most `capacity` axes. A value; allocates nothing.
class Shape {
 public:
  static constexpr int capacity = 6;
  static constexpr std::int64_t most_elements = std::int64_t{1} << 59;  ///< so that the size in bytes fits for any type

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  /// Throws LogicError for more than `capacity` axes or a negative extent.
  explicit Shape(std::span<const std::int64_t> extents);

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] std::int64_t operator[](int axis) const noexcept { return extents_[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] std::int64_t& operator[](int axis) noexcept { return extents_[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] const std::int64_t* begin() const noexcept { return extents_.data(); }
  [[nodiscard]] const std::int64_t* end() const noexcept { return extents_.data() + rank_; }

  /// Number of elements; 1 for a scalar (rank 0).
  [[nodiscard]] std::int64_t count() const noexcept;
  /// The same axes without the outermost: the shape of one sample of a batch.
  [[nodiscard]] Shape without_batch() const;
  /// `(64, 28, 28, 1)`.
  [[nodiscard]] std::string text() const;

  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, capacity> extents_{};
  int rank_ = 0;
};

/// The memory order of the elements of a logical shape: an order of the axes, outermost first, then *inner blocks*,
/// which divide an axis into pieces that are stored together (the axis is padded to a whole number of pieces).
///
/// Written as a tag in which a letter is an axis of the logical shape: for activations (N, H, W, C), `abcd` is plain
/// NHWC and `adbc16d` keeps 16 channels together. The empty layout is plain row-major order of any rank. Callers of
/// primitives treat layouts as opaque: they compare them, store tags, and copy (see `reorder`).
class Layout {
 public:
  struct Block {
    int axis;
    std::int64_t size;
    bool operator==(const Block&) const = default;
  };
  static constexpr int max_blocks = 4;

  Layout() = default;
  /// @param order   a permutation of the axes, outermost first
  /// @param blocks  outermost first
  Layout(std::span<const int> order, std::span<const Block> blocks);

  /// The inverse of `tag`. Throws InputError for an invalid tag.
  static Layout parse(std::string_view tag);
  /// "plain", or axes and blocks as letters.
  [[nodiscard]] std::string tag() const;

  [[nodiscard]] bool is_plain() const noexcept { return rank_ == 0; }
  [[nodiscard]] std::span<const Block> blocks() const noexcept {
    return {blocks_.data(), static_cast<std::size_t>(block_count_)};
  }

  /// Extents after padding to whole blocks.
  [[nodiscard]] Shape padded(const Shape& shape) const;

  /// The offset, in elements, of index i along `axis`, for every i; offsets of the axes add up.
  [[nodiscard]] std::vector<std::int64_t> offsets(const Shape& shape, int axis) const;

  /// Strides, in elements, of the outer (blocked) axes, in the order of the logical axes.
  [[nodiscard]] std::array<std::int64_t, Shape::capacity> outer_strides(const Shape& shape) const;

  /// The layout of one entry of axis 0 if the entries are contiguous; otherwise `nullopt`.
  [[nodiscard]] std::optional<Layout> without_outermost() const;

  /// The inverse: contiguous entries of this layout along a new axis 0.
  [[nodiscard]] Layout with_outermost() const;

  /// The layout without `axis`, which has extent 1; the bytes stay in place. Throws LogicError if that axis is blocked.
  [[nodiscard]] Layout without_step(int axis) const;

  /// The inverse: with a new axis `axis` of extent 1, directly outside of the previous axis of that number.
  [[nodiscard]] Layout with_step(int axis) const;

  bool operator==(const Layout&) const = default;

 private:
  std::array<int, Shape::capacity> order_{};
  std::array<Block, max_blocks> blocks_{};
  int rank_ = 0;
  int block_count_ = 0;
};

/// A tensor without its memory: logical shape, element type and layout.
struct TensorDesc {
  Shape shape;
  DType dtype = DType::float32;
  Layout layout;

  /// Elements of the logical shape.
  [[nodiscard]] std::int64_t count() const noexcept { return shape.count(); }
  /// Elements in memory, padding included.
  [[nodiscard]] std::int64_t padded_count() const { return layout.padded(shape).count(); }
  /// Bytes in memory, padding included.
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(padded_count()) * size_of(dtype); }
  /// `float32 (64, 28, 28, 1) plain`.
  [[nodiscard]] std::string text() const;

  bool operator==(const TensorDesc&) const = default;
};

/// True if both descriptions put every element at the same offset (axes of extent 1 may be in any order), so that one
/// tensor can be read as the other without a copy.
[[nodiscard]] bool same_bytes(const TensorDesc& a, const TensorDesc& b);

/// A view of memory owned elsewhere (a Buffer, an arena, a user's vector). Copying it copies no data.
class Tensor {
 public:
  Tensor() = default;
  Tensor(const TensorDesc& desc, void* data, Device device = {})
      : desc_(desc), data_(static_cast<std::byte*>(data)), device_(device) {}

  /// A plain one-dimensional view of a caller's elements.
  template <class T, std::size_t Extent>
  explicit Tensor(std::span<T, Extent> elements)
      : Tensor({Shape{static_cast<std::int64_t>(elements.size())}, dtype_of<T>, {}}, elements.data()) {}

  [[nodiscard]] const TensorDesc& desc() const noexcept { return desc_; }
  [[nodiscard]] const Shape& shape() const noexcept { return desc_.shape; }
  [[nodiscard]] DType dtype() const noexcept { return desc_.dtype; }
  [[nodiscard]] Device device() const noexcept { return device_; }
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] bool empty() const noexcept { return data_ == nullptr; }

  /// The stored elements, padding included. Throws LogicError when T is not the tensor's type.
  template <class T>
  [[nodiscard]] std::span<T> as() const {
    check_type(dtype_of<std::remove_const_t<T>>);
    return {reinterpret_cast<T*>(data_), static_cast<std::size_t>(desc_.padded_count())};
  }
  /// The first stored element; without a type check.
  template <class T>
  [[nodiscard]] T* pointer() const noexcept {
    return reinterpret_cast<T*>(data_);
  }

 private:
  void check_type(DType wanted) const;

  TensorDesc desc_;
  std::byte* data_ = nullptr;
  Device device_;
};

/// Copies every element of `from` to the same logical index in `to`; shapes and types must be equal, layouts may
/// differ. Padding of `to` is not changed. Device tensors are copied through the host, after all work issued to the
/// device before. For files, hashes and tests, not for the training step.
void reorder(const Tensor& from, const Tensor& to);

/// A field of a sample: `input`, float32, (28, 28, 1).
struct Field {
  std::string name;
  Shape shape;  ///< shape of one sample, without the batch axis
  DType dtype = DType::float32;
};

}  // namespace ronda
