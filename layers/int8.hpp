#pragma once
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include <ronda/layers/graph.hpp>

/// Dense layers and convolutions with int8 weights and inputs, for inference.
///
/// A weight w of output channel o is kept as q = round(w / s_o), int8 from -127 to 127, with one scale s_o per channel.
/// An input x becomes u = round(x / s) + z, a byte from 0 to 255, with one scale s and one zero point z for the whole
/// input of an operation. Values outside the range found by calibration are clamped to it. Then
///
///     y_o  =  s · s_o · Σ (u − z) · q   +  b_o
///
/// where the sum is exact, in int32. Scales, biases and all other operations are float32. (Jacob et al., "Quantization
/// and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference", CVPR 2018.) If a row of a dense
/// layer or an image of a convolution has a NaN or an infinity, all of its outputs are NaN.
///
/// Parameters of such an operation, in this order: `weight` (int8), `weight_scale` (outputs), `input_scale` (1),
/// `input_zero` (1), and `bias` (outputs) where it has one.
namespace ronda {

/// The largest number of products per output whose sum fits in an int32.
inline constexpr std::int64_t int8_most_inputs = 65'536;

/// The names of the weights whose operations can compute in int8: dense layers, and convolutions without groups, with
/// at most `int8_most_inputs` inputs per output, whose weight no other operation reads.
[[nodiscard]] std::vector<std::string> int8_weights(const Graph& graph);

/// The graph in which the operations of these weights compute in int8. Throws InputError for a weight that
/// `int8_weights` does not name.
[[nodiscard]] Graph with_int8(Graph graph, std::span<const std::string> weights);

/// Statistics of the inputs of an operation, for calibration.
struct InputRange {
  std::string weight = {}, bias = {};  ///< names of the operation's parameters; bias is empty without one
  float least = 0, most = 0;
  bool finite = true;             ///< false: an input was NaN or infinite
  std::vector<double> sums = {};  ///< sum of each feature, or of each channel of an image
  std::int64_t count = 0;         ///< number of terms in each sum
};

/// The graph, with each operation of `int8_weights` recording its inputs in `ranges`, for calibration. Samples with
/// weight 0 in the pass, such as copies that fill up a batch, are not recorded.
/// @param ranges  receives one element per operation; must outlive the graph and its programs
[[nodiscard]] Graph with_ranges(Graph graph, std::deque<InputRange>& ranges);

/// Quantisation of an input: the range from `least` to `most`, extended to include 0, in 255 steps.
struct Int8Input {
  float scale = 1, zero = 0;  ///< zero: an integer, the byte that represents 0
};
[[nodiscard]] Int8Input int8_input(const InputRange& range);

struct Int8Weight {
  std::vector<std::int8_t> values;
  std::vector<float> scales;  ///< one per output; 1 where all weights are 0
};
/// Quantises finite weights, one row per output: the largest magnitude of each row becomes 127.
[[nodiscard]] Int8Weight int8_weight(std::span<const float> weight, std::int64_t outputs);

/// The mean error of each output from rounding the weights, over the inputs in `range`, without a convolution's
/// padding: Σ (w − s_o q) · mean(x). Adding it to the bias corrects that error (Nagel et al., "Data-free quantization
/// through weight equalization and bias correction", ICCV 2019).
/// @param weight  (outputs, features) or (outputs, channels, …), as in files: the weights that `rounded` was computed
///                from
[[nodiscard]] std::vector<float> int8_bias_correction(std::span<const float> weight, const Int8Weight& rounded,
                                                      const InputRange& range);

}  // namespace ronda
