#pragma once
#include <ronda/core/error.hpp>
#include <ronda/layers/layer.hpp>

namespace ronda {

/// Common base of both poolings of sequences (N, T, C). A pooling after a Conv1d is fused into it.
class Pool1d : public Layer {
 public:
  Value build(Value x, GraphBuilder& builder) const override {
    if (x.shape.rank() != 3) throw InputError("a pooling of sequences takes (N, T, C), not " + x.shape.text());
    return builder.apply(spec_, {x});
  }

 protected:
  Pool1d(PoolKind kind, std::int64_t kernel, std::int64_t stride, std::int64_t padding)
      : spec_{kind, {1, kernel}, {1, stride == 0 ? kernel : stride}, {0, padding}} {}

 private:
  PoolSpec spec_;
};

/// The maximum of each window; the first of equal maxima gets the gradient, as in PyTorch.
class MaxPool1d final : public Pool1d {
 public:
  /// @param stride  0: as large as the kernel
  explicit MaxPool1d(std::int64_t kernel, std::int64_t stride = 0, std::int64_t padding = 0)
      : Pool1d(PoolKind::maximum, kernel, stride, padding) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "max_pool"; }
};

/// The mean of each window; padding does not count.
class AveragePool1d final : public Pool1d {
 public:
  /// @param stride  0: as large as the kernel
  explicit AveragePool1d(std::int64_t kernel, std::int64_t stride = 0, std::int64_t padding = 0)
      : Pool1d(PoolKind::average, kernel, stride, padding) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "average_pool"; }
};

/// Common base of both poolings of (N, H, W, C). A pooling after a Conv2d is fused into it.
class Pool2d : public Layer {
 public:
  Value build(Value x, GraphBuilder& builder) const override {
    if (x.shape.rank() != 4) throw InputError("a pooling of images takes (N, H, W, C), not " + x.shape.text());
    return builder.apply(spec_, {x});
  }

 protected:
  explicit Pool2d(const PoolSpec& spec) : spec_(spec) {}

 private:
  PoolSpec spec_;
};

/// The maximum of each window (`3`, or `{1, 7}`); the first of equal maxima gets the gradient, as in PyTorch.
class MaxPool2d final : public Pool2d {
 public:
  /// @param stride  0: as large as the kernel
  explicit MaxPool2d(HeightWidth kernel, HeightWidth stride = 0, HeightWidth padding = 0)
      : Pool2d({PoolKind::maximum, kernel, stride == 0 ? kernel : stride, padding}) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "max_pool"; }
};

/// The mean of each window; padding does not count.
class AveragePool2d final : public Pool2d {
 public:
  /// @param stride  0: as large as the kernel
  explicit AveragePool2d(HeightWidth kernel, HeightWidth stride = 0, HeightWidth padding = 0)
      : Pool2d({PoolKind::average, kernel, stride == 0 ? kernel : stride, padding}) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "average_pool"; }
};

/// The mean of each channel over the whole image: (N, H, W, C) becomes (N, 1, 1, C), for images of any size, as
/// PyTorch's AdaptiveAvgPool2d(1). A sequence (N, T, C) becomes (N, 1, C).
class GlobalAveragePool final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "average_pool"; }
  Value build(Value x, GraphBuilder& builder) const override { return builder.apply(global_average(x.shape), {x}); }
};

}  // namespace ronda
