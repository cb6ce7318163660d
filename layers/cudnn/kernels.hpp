#pragma once
#include <cstdint>

#include <ronda/core/stream.hpp>
#include <ronda/layers/cudnn/arithmetic.hpp>
#include <ronda/layers/cudnn/patch_arithmetic.hpp>

/// What arithmetic.hpp says, as kernels on a GPU's stream, for every type of number. Nothing waits.
namespace ronda::cudnn {

/// body(i) for every i in [0, count).
template <class Body>
void launch(Stream& stream, std::int64_t count, const Body& body);
/// body(team, i) for every i in [0, count).
template <class Body>
void launch_teams(Stream& stream, std::int64_t count, const Body& body);

/// As AddBias: y (rows, channels), in place.
template <Number T>
void add_bias(Stream& stream, T* y, const T* bias, std::int64_t rows, std::int64_t channels, bool relu);
/// As Pool and PoolGradient, of so many images.
template <Number T>
void pool(Stream& stream, const PoolGeometry& geometry, std::int64_t images, const T* x, T* y, bool relu);
template <Number T>
void pool_gradient(Stream& stream, const PoolGeometry& geometry, std::int64_t images, const T* x, const T* dy, T* dx,
                   bool relu);

/// As Patches and PatchSums, of so many images.
void gather_patches(Stream& stream, const PatchGeometry& geometry, std::int64_t images, const float* x, float* patches);
void sum_patches(Stream& stream, const PatchGeometry& geometry, std::int64_t images, const float* patches, float* dx);

/// Sums of the columns of x (rows, columns). `scratch` holds column_chunks × columns numbers.
template <Number T>
void sum_columns(Stream& stream, const T* x, std::int64_t rows, std::int64_t columns, float* scratch, T* sums);

}  // namespace ronda::cudnn
