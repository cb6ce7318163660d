#pragma once
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include <ronda/layers/graph.hpp>

/// Dense layers and convolutions whose products are of whole numbers, for inference.
///
/// A weight w of output channel o is kept as q = round(w / s_o), int8 from -127 to 127, with one scale s_o a channel.
/// An input x becomes u = round(x / s) + z, a byte from 0 to 255, with one scale s and one zero z for all of an
/// operation's input: what lies outside the range that calibration saw gets the nearest byte. Then
///
///     y_o  =  s · s_o · Σ (u − z) · q   +  b_o
///
/// whose sum is exact, in int32. The rest is float32: scales, biases, and all other operations. (Jacob et al.,
/// "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference", CVPR 2018.)
/// A row of a dense layer, or an image of a convolution, with a NaN or an infinity gives NaN everywhere.
///
/// Parameters of such an operation, in this order: `weight` (int8), `weight_scale` (outputs), `input_scale` (1),
/// `input_zero` (1), and `bias` (outputs) where it has one.
namespace ronda {

/// Numbers that are added up for one output, at most: their sum fits in an int32.
inline constexpr std::int64_t int8_most_inputs = 65'536;

/// The names of the weights whose operations can compute in int8: those of dense layers and of convolutions without
/// groups, of at most `int8_most_inputs` inputs, which no other operation reads.
[[nodiscard]] std::vector<std::string> int8_weights(const Graph& graph);

/// The graph in which the operations of these weights compute in int8. Throws InputError for a weight that
/// `int8_weights` does not name.
[[nodiscard]] Graph with_int8(Graph graph, std::span<const std::string> weights);

/// What an operation was given while a model computed.
struct InputRange {
  std::string weight = {}, bias = {};  ///< the operation's; without a bias empty
  float least = 0, most = 0;
  bool finite = true;             ///< false: a NaN or an infinity was among it
  std::vector<double> sums = {};  ///< of each feature, or channel of an image
  std::int64_t count = 0;         ///< of what each of them adds up
};

/// The graph, in which each operation of `int8_weights` tells what it is given, for calibration. Samples whose weight
/// in the pass is 0, as copies that fill up a batch, do not count.
/// @param ranges  gets one for each of them; outlives the graph and what is made of it
[[nodiscard]] Graph with_ranges(Graph graph, std::deque<InputRange>& ranges);

/// From the least to the most, 0 included, in 255 steps.
struct Int8Input {
  float scale = 1, zero = 0;  ///< zero: a whole number, the byte that stands for 0
};
[[nodiscard]] Int8Input int8_input(const InputRange& range);

struct Int8Weight {
  std::vector<std::int8_t> values;
  std::vector<float> scales;  ///< of the outputs; 1 where all weights are 0
};
/// Of rows of finite numbers, one an output: the largest of each becomes 127.
[[nodiscard]] Int8Weight int8_weight(std::span<const float> weight, std::int64_t outputs);

/// What rounding the weights changes in each output on average, for the inputs that were seen, but for a convolution's
/// padding: Σ (w − s_o q) · mean(x). Added to the bias it takes that error out (Nagel et al., "Data-free quantization
/// through weight equalization and bias correction", ICCV 2019).
/// @param weight  (outputs, features) or (outputs, channels, …), as in files, that `rounded` was made of
[[nodiscard]] std::vector<float> int8_bias_correction(std::span<const float> weight, const Int8Weight& rounded,
                                                      const InputRange& range);

}  // namespace ronda
