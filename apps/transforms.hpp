#pragma once
#include <vector>

#include <ronda/data/image_transforms.hpp>

namespace ronda::apps {

/// Of the training images of CIFAR-10, by channel.
inline Transform cifar10_normalized() { return normalize({0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F}); }
/// What --augment does before.
inline std::vector<Transform> cifar10_augmentation() { return {random_crop(4), random_flip()}; }

/// Of ImageNet's images.
inline Transform imagenet_normalized() { return normalize({0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}); }
/// Beside the random crop of an ImageFolder.
inline std::vector<Transform> imagenet_augmentation() { return {random_flip()}; }

}  // namespace ronda::apps
