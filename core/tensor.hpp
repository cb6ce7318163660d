#pragma once
#include <cstddef>
#include <span>
#include <string>

#include <ronda/core/device.hpp>
#include <ronda/core/dtype.hpp>
#include <ronda/core/layout.hpp>
#include <ronda/core/shape.hpp>

namespace ronda {

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

}  // namespace ronda
