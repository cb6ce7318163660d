#pragma once
/// Every layer and loss there is.
#include <ronda/layers/concat.hpp>
#include <ronda/layers/conv2d.hpp>
#include <ronda/layers/custom_operation.hpp>
#include <ronda/layers/dense.hpp>
#include <ronda/layers/flatten.hpp>
#include <ronda/layers/gelu.hpp>
#include <ronda/layers/layer_norm.hpp>
#include <ronda/layers/mean_squared_error.hpp>
#include <ronda/layers/pool2d.hpp>
#include <ronda/layers/relu.hpp>
#include <ronda/layers/residual.hpp>
#include <ronda/layers/sequential.hpp>
#include <ronda/layers/sigmoid.hpp>
#include <ronda/layers/silu.hpp>
#include <ronda/layers/softmax_cross_entropy.hpp>
#include <ronda/layers/tanh.hpp>
