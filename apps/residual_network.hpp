#pragma once
#include <ronda/layers/layers.hpp>

namespace ronda::apps {

/// Two convolutions beside a shortcut, and a ReLU behind their sum. Where the channels change, the shortcut is a
/// convolution of single pixels.
inline Sequential residual_block(std::int64_t channels, bool widens = false) {
  const Sequential main(Conv2d(channels, 3, 1, 1), ReLU(), Conv2d(channels, 3, 1, 1));
  return widens ? Sequential(Residual(main, Conv2d(channels, 1)), ReLU()) : Sequential(Residual(main), ReLU());
}

/// A residual network of eight convolutions for images (N, H, W, C) and ten classes (after He et al., "Deep residual
/// learning for image recognition", CVPR 2016, without batch normalisation).
inline Sequential residual_network() {
  return Sequential(Conv2d(16, 3, 1, 1), ReLU(), residual_block(16), MaxPool2d(2),  //
                    residual_block(32, true), MaxPool2d(2),                         //
                    residual_block(32), AveragePool2d(7), Flatten(), Dense(10));
}

}  // namespace ronda::apps
