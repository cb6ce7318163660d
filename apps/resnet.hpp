#pragma once
#include <ronda/layers/layers.hpp>

#include "command_line.hpp"

namespace ronda::apps {

/// Residual networks with batch normalisation (He et al., "Deep residual learning for image recognition", CVPR 2016),
/// with torchvision's shapes, for images (N, H, W, C).
class ResNet {
 public:
  /// @param synchronized  batches are normalised over all ranks: N ranks train what one does
  explicit ResNet(bool synchronized) : synchronized_(synchronized) {}

  /// ResNet-18 for images of 32 x 32 pixels: one convolution of 3 x 3 before the blocks, and no pooling.
  [[nodiscard]] Sequential small18(std::int64_t classes) const {
    Sequential model(convolution(64, 3), ReLU());
    for (const std::int64_t channels : {64, 128, 256, 512}) {
      const bool same_shape = channels == 64;
      model.add(same_shape ? block(basic(channels, 1)) : block(basic(channels, 2), convolution(channels, 1, 2)));
      model.add(block(basic(channels, 1)));
    }
    return with_head(std::move(model), classes);
  }

  /// ResNet-50; the stride of a block is in its convolution of 3 x 3, as torchvision has it.
  [[nodiscard]] Sequential large50(std::int64_t classes) const {
    Sequential model(convolution(64, 7, 2), ReLU(), MaxPool2d(3, 2, 1));
    std::int64_t channels = 64;
    for (const int blocks : {3, 4, 6, 3}) {
      const std::int64_t stride = channels == 64 ? 1 : 2;
      model.add(block(bottleneck(channels, stride), convolution(4 * channels, 1, stride)));
      for (int i = 1; i < blocks; ++i) model.add(block(bottleneck(channels, 1)));
      channels *= 2;
    }
    return with_head(std::move(model), classes);
  }

 private:
  /// And its normalisation.
  [[nodiscard]] Sequential convolution(std::int64_t channels, std::int64_t kernel, std::int64_t stride = 1) const {
    Sequential layers(Conv2d(channels, kernel, {.stride = stride, .padding = kernel / 2, .bias = false}));
    if (synchronized_)
      layers.add(SyncBatchNorm());
    else
      layers.add(BatchNorm());
    return layers;
  }
  [[nodiscard]] Sequential basic(std::int64_t channels, std::int64_t stride) const {
    return Sequential(convolution(channels, 3, stride), ReLU(), convolution(channels, 3));
  }
  [[nodiscard]] Sequential bottleneck(std::int64_t channels, std::int64_t stride) const {
    return Sequential(convolution(channels, 1), ReLU(), convolution(channels, 3, stride), ReLU(),
                      convolution(4 * channels, 1));
  }
  static Sequential block(const Sequential& main) { return Sequential(Residual(main), ReLU()); }
  static Sequential block(const Sequential& main, const Sequential& shortcut) {
    return Sequential(Residual(main, shortcut), ReLU());
  }
  static Sequential with_head(Sequential model, std::int64_t classes) {
    model.add(GlobalAveragePool());
    model.add(Flatten());
    model.add(Dense(classes));
    return model;
  }

  bool synchronized_;
};

/// --sync-batch-norm.
/// @param synchronized  is set; its value is the default
void add_sync_batch_norm(CommandLine& command_line, bool& synchronized);

}  // namespace ronda::apps
