#pragma once
#include <ronda/layers/layers.hpp>

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
      const bool first = channels == 64;
      model.add(block(basic(channels, first ? 1 : 2), first ? nullptr : shortcut(channels, 2)));
      model.add(block(basic(channels, 1), nullptr));
    }
    return with_head(std::move(model), classes);
  }

  /// ResNet-50; the stride of a block is in its convolution of 3 x 3, as torchvision has it.
  [[nodiscard]] Sequential large50(std::int64_t classes) const {
    Sequential model(convolution(64, 7, 2), ReLU(), MaxPool2d(3, 2, 1));
    std::int64_t channels = 64;
    for (const int blocks : {3, 4, 6, 3}) {
      for (int i = 0; i < blocks; ++i) {
        const std::int64_t stride = i == 0 && channels != 64 ? 2 : 1;
        model.add(block(bottleneck(channels, stride), i == 0 ? shortcut(4 * channels, stride) : nullptr));
      }
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
  [[nodiscard]] std::shared_ptr<const Sequential> shortcut(std::int64_t channels, std::int64_t stride) const {
    return std::make_shared<const Sequential>(convolution(channels, 1, stride));
  }
  /// @param shortcut  null: the block's input as it is
  static Sequential block(const Sequential& main, const std::shared_ptr<const Sequential>& shortcut) {
    return shortcut ? Sequential(Residual(main, *shortcut), ReLU()) : Sequential(Residual(main), ReLU());
  }
  static Sequential with_head(Sequential model, std::int64_t classes) {
    model.add(GlobalAveragePool());
    model.add(Flatten());
    model.add(Dense(classes));
    return model;
  }

  bool synchronized_;
};

}  // namespace ronda::apps
