#pragma once
#include <vector>

#include <ronda/data/transform.hpp>

namespace ronda::apps {

/// (pixel - mean) / deviation, by channel.
struct PixelScale {
  std::vector<float> means, deviations;
  [[nodiscard]] Transform transform() const { return normalize(means, deviations); }
};

/// Of the training images of CIFAR-10.
inline PixelScale cifar10_pixels() { return {{0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F}}; }
inline Transform cifar10_normalized() { return cifar10_pixels().transform(); }
/// What --augment does before.
inline std::vector<Transform> cifar10_augmentation() { return {random_crop(4), random_flip()}; }

/// Of ImageNet's images.
inline PixelScale imagenet_pixels() { return {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}}; }
inline Transform imagenet_normalized() { return imagenet_pixels().transform(); }
/// Beside the random crop of an ImageFolder.
inline std::vector<Transform> imagenet_augmentation() { return {random_flip()}; }

}  // namespace ronda::apps
