#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

/// Common part of both poolings of (N, H, W, C). Behind a Conv2d they become part of it.
class Pool2d : public Layer {
 public:
  Value build(Value x, GraphBuilder& builder) const override { return builder.apply(spec_, {x}); }

 protected:
  explicit Pool2d(const PoolSpec& spec) : spec_(spec) {}

 private:
  PoolSpec spec_;
};

/// The largest of each kernel × kernel window; among equals the first gets the gradient, as in PyTorch.
class MaxPool2d final : public Pool2d {
 public:
  /// @param stride  0: as large as the kernel
  explicit MaxPool2d(std::int64_t kernel, std::int64_t stride = 0, std::int64_t padding = 0)
      : Pool2d({PoolKind::maximum, kernel, stride == 0 ? kernel : stride, padding}) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "max_pool"; }
};

/// The mean of each kernel × kernel window; padding does not count.
class AveragePool2d final : public Pool2d {
 public:
  /// @param stride  0: as large as the kernel
  explicit AveragePool2d(std::int64_t kernel, std::int64_t stride = 0, std::int64_t padding = 0)
      : Pool2d({PoolKind::average, kernel, stride == 0 ? kernel : stride, padding}) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "average_pool"; }
};

}  // namespace ronda
