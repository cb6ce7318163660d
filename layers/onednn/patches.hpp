#pragma once
#include <cstddef>
#include <cstdint>

#include <ronda/layers/onednn/fused_convolution.hpp>

/// The loops of a FusedConvolution of 3×3 over one channel, with windows of 2×2, for AVX-512: a window's *patch*, the
/// 4×4 inputs that its outputs are made of, is one vector. Elsewhere they do nothing, and `suit` says no.
///
/// Forward takes 16 products a window instead of 36 (Winograd's F(2×2, 3×3): Lavin and Gray, "Fast algorithms for
/// convolutional neural networks", CVPR 2016). Its transforms only add pairs of inputs, and an output is made of its
/// own 3×3 inputs alone, so outputs of zeros are the bias exactly. Backward takes the nine inputs of each output
/// channel's winner out of the patch by permutations. Patches of zeros alone, of which pictures of digits have many,
/// are left out: their outputs are the bias, and they add nothing to gradients. (So a weight that is not finite is seen
/// by the others alone. An infinite input may give NaN, where the direct sum is infinite.)
namespace ronda::onednn::patches {

using Windows = FusedConvolution::Windows;

[[nodiscard]] bool suit(const Windows& p);

/// A sample's patches that are not all zeros.
struct Cut {
  float* numbers;         ///< (count, 16), aligned
  std::int32_t* windows;  ///< of each, in order
  std::int64_t count = 0;
};
/// Bytes of one, for all patches.
[[nodiscard]] std::size_t bytes_of(const Windows& p);
constexpr std::int64_t transformed_taps = 16;  ///< of a kernel

/// u (4, 4, 16) of a kernel w (3, 3, 16): what `convolve_and_pool` multiplies with.
void transform_weights(const float* w, float* u);
/// @param transformed  as `convolve_and_pool` reads them; otherwise as `add_gradients` does
/// @param memory       of `bytes_of(p)`, aligned to vectors
[[nodiscard]] Cut cut(const Windows& p, const float* x, bool transformed, std::byte* memory);

/// Sixteen output channels of a sample: as FusedConvolution's loops of the same names.
void convolve_and_pool(const Windows& p, const Cut& transformed, const float* u, const float* bias, float* y,
                       std::uint8_t* winners);
void add_gradients(const Windows& p, const Cut& patches, const float* dy, const std::uint8_t* winners, float* sums);

}  // namespace ronda::onednn::patches
