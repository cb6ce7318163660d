#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/layers/primitives.hpp>

namespace ronda::cudnn {

class Library;

/// What a graph computes, and its pointers in their order.
enum class ConvolutionGraph : std::uint8_t {
  forward,          ///< x, w → y
  forward_bias,     ///< x, w, b → y
  data_gradient,    ///< dy, w → dx
  weight_gradient,  ///< dy, x → dw
};

/// A convolution, or a part of its gradient, described to cuDNN (or done by patches: patches.hpp), first apart from any
/// device (which says whether it makes sense), then with the engines that this device has for it, as the rules allow:
/// deterministic ones alone, if so; with Precision::float32 none on tensor cores; but with tf32 none that goes by
/// Winograd's or Fourier's transformations, which cost digits. Tensors are of the precision's type, weight gradients
/// too (in cuDNN 9.19 no engine was found that writes them in float32 from half types), and sums are float32.
class Graph {
 public:
  virtual ~Graph() = default;
  /// Asks for engines, and builds the one named `known`, or where there is none of that name the first `engines_tried`
  /// that can be built: some take seconds, being compiled for it. Where none can, the list is empty and `why_none` says
  /// what cuDNN said.
  virtual void find_engines(const Library& library, std::string_view known) = 0;
  struct Engine {
    std::string name;
    std::size_t workspace_bytes;
  };
  [[nodiscard]] virtual std::span<const Engine> engines() const noexcept = 0;
  [[nodiscard]] virtual const std::string& why_none() const noexcept = 0;
  virtual void run(const Library& library, Stream& stream, std::span<void*> pointers, std::byte* workspace,
                   std::size_t engine) = 0;
};

/// The layout of weights (out, in, kernel, kernel) on a GPU: out, kernel, kernel, in.
[[nodiscard]] Layout weight_layout();

/// Describes and validates; needs no device. Throws DeviceError with cuDNN's text.
std::unique_ptr<Graph> make_graph(const ConvolutionProblem& spec, ConvolutionGraph kind, const EngineRules& rules);

}  // namespace ronda::cudnn
