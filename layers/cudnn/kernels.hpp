#pragma once
#include <cstdint>

#include <ronda/layers/cudnn/arithmetic.hpp>
#include <ronda/runtime/core/stream.hpp>

/// What arithmetic.hpp says, as kernels on a GPU's stream. Nothing waits.
namespace ronda::cudnn {

void launch(Stream& stream, std::int64_t count, const AddBias& body);
void launch(Stream& stream, std::int64_t count, const Relu& body);
void launch(Stream& stream, std::int64_t count, const ReluGradient& body);
void launch(Stream& stream, std::int64_t count, const Pool& body);
void launch(Stream& stream, std::int64_t count, const PoolGradient& body);
void launch(Stream& stream, std::int64_t rows, const SoftmaxRow& body);
void launch(Stream& stream, const SumLosses& body);

/// Sums of the columns of x (rows, columns). `scratch` holds column_chunks × columns numbers.
void sum_columns(Stream& stream, const float* x, std::int64_t rows, std::int64_t columns, float* scratch, float* sums);

}  // namespace ronda::cudnn
