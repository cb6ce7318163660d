#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include <ronda/layers/graph/lowering.hpp>
#include <ronda/layers/graph/memory.hpp>

namespace ronda::graph {

/// Which part of an operation's backward a call is.
enum class Half : std::uint8_t { both, first, second };

/// Backward of a step, or a half of it. Gradients are buffers, with the descriptions of the step's inputs, output and
/// parameters.
struct BackwardCall {
  std::size_t step = 0;
  std::size_t output_gradient = 0;
  std::vector<std::optional<std::size_t>> input_gradients = {};      ///< none: not needed, or the output's gradient
  std::vector<std::optional<std::size_t>> parameter_gradients = {};  ///< none: where the gradient belongs
  bool ready_calls_follow = false;  ///< the operation does not report its parameters: ReadyCalls do
  Half half = Half::both;
};

/// sum = parts, one after another.
struct SumCall {
  std::unique_ptr<Operation> add;
  std::vector<std::size_t> parts;  ///< buffers
  std::size_t sum = 0;             ///< a buffer
};
/// gradient += part.
struct ParameterSumCall {
  std::unique_ptr<Operation> add;
  ParameterId parameter{};
  std::size_t part = 0;
};
/// Reports that a parameter's gradient is complete.
struct ReadyCall {
  ParameterId parameter{};
};

using GradientCall = std::variant<BackwardCall, SumCall, ParameterSumCall, ReadyCall>;

/// The calls of backward, in their order: the last step first, and second halves of steps behind all else.
struct Backward {
  std::vector<GradientCall> calls;
  std::size_t second_half = 0;                              ///< the number of the first call that is a second half
  std::size_t output_gradient = 0;                          ///< the buffer that the loss writes
  std::vector<std::size_t> passed_gradients;                ///< the buffers of the gradients of Lowered::passed
  std::vector<std::optional<std::size_t>> input_gradients;  ///< of the graph's inputs; none: not asked for
};

/// Plans backward. If several steps read a value or a parameter, their gradients are summed in the order of backward:
/// the last reader's first.
/// @param memory  gets the gradients' buffers and their uses
/// @param time    of the loss; calls follow it, one after another
[[nodiscard]] Backward plan_backward(const Lowered& lowered, std::size_t inputs, Primitives& primitives, Picker& picker,
                                     Memory& memory, std::uint32_t time);

}  // namespace ronda::graph
