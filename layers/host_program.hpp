#pragma once
#include <deque>
#include <span>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/parameter.hpp>
#include <ronda/layers/program.hpp>

namespace ronda {

/// A program that owns all its memory, on the host and without a strategy.
class HostProgram {
 public:
  /// Parameters are zero. Throws as Program does, and ResourceError.
  HostProgram(Graph graph, Primitives& primitives, Picker& picker, const ProgramOptions& options = {});
  HostProgram(const HostProgram&) = delete;  // the program knows its memory

  [[nodiscard]] Program& program() noexcept { return program_; }
  [[nodiscard]] const Program& program() const noexcept { return program_; }
  /// By ParameterId; with gradients in training mode.
  [[nodiscard]] std::span<const Parameter> parameters() const noexcept { return parameters_; }
  /// By StateId.
  [[nodiscard]] std::span<const Tensor> states() const noexcept { return states_; }
  /// Sets all states to their initial values, as the constructor does.
  void reset_states();

 private:
  Tensor tensor(const TensorDesc& desc);

  Program program_;
  std::deque<Buffer> memory_;
  std::vector<Parameter> parameters_;
  std::vector<Tensor> states_;
};

/// The tensor description of a state.
[[nodiscard]] inline TensorDesc desc_of(const GraphState& state) { return {state.shape, state.dtype, {}}; }
/// Sets a state on the host to its initial value; integers to 0.
void set_initial(const GraphState& state, const Tensor& tensor);

}  // namespace ronda
