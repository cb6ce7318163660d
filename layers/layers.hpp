#pragma once
// Every layer, loss and metric there is.
#include <ronda/layers/activations.hpp>
#include <ronda/layers/composition.hpp>
#include <ronda/layers/convolution.hpp>
#include <ronda/layers/custom_operation.hpp>
#include <ronda/layers/dense.hpp>
#include <ronda/layers/dropout.hpp>
#include <ronda/layers/embedding.hpp>
#include <ronda/layers/losses.hpp>
#include <ronda/layers/metrics.hpp>
#include <ronda/layers/multi_head_attention.hpp>
#include <ronda/layers/normalization.hpp>
#include <ronda/layers/pooling.hpp>
