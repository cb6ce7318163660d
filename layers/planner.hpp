#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/layers/initializer.hpp>
#include <ronda/layers/pass.hpp>
#include <ronda/layers/picker.hpp>
#include <ronda/runtime/core/buffer.hpp>
#include <ronda/runtime/core/parameter.hpp>

namespace ronda {

class Primitives;

/// A parameter that a layer wants.
struct ParameterRequest {
  std::string name;                                    ///< `dense1.weight`
  TensorDesc desc;                                     ///< logical shape as in files, layout as the primitive prefers
  std::int64_t fan_in = 0, fan_out = 0;                ///< 0 for a bias
  std::optional<TensorDesc> flattened = std::nullopt;  ///< see Parameter
  std::optional<Initializer> initializer = std::nullopt;  ///< where the layer insists; otherwise the model's
};

/// How long the bytes of a buffer must keep their content.
enum class Lifetime : std::uint8_t {
  pass,      ///< from a layer's forward to the end of its backward; memory of its own
  gradient,  ///< an input gradient: until the layer before has used it; shared between layers, two at a time
  scratch,   ///< within one call of one layer; shared by all
};
enum class BufferId : std::uint32_t {};
struct BufferRequest {
  std::string owner;  ///< what it is for: `conv1 output`
  std::size_t bytes;
  Lifetime lifetime;
};

/// Is asked for everything a model needs, and remembers it; the strategy then takes memory once and makes `Bindings`.
class Planner {
 public:
  Planner(Primitives& primitives, Picker& picker, Mode mode) : primitives_(primitives), picker_(picker), mode_(mode) {}

  [[nodiscard]] Primitives& primitives() const noexcept { return primitives_; }
  [[nodiscard]] Picker& picker() const noexcept { return picker_; }
  /// In `evaluation` nothing is kept for a backward pass and no gradients are planned.
  [[nodiscard]] Mode mode() const noexcept { return mode_; }

  /// `conv1`, `conv2`, …: the next name of that kind.
  std::string next_name(std::string_view kind);

  /// Throws InputError when the name was taken before.
  ParameterId parameter(ParameterRequest request);
  BufferId buffer(std::string owner, std::size_t bytes, Lifetime lifetime);

  /// Whether somebody needs the gradient of what the layer being planned is given; false for a model's first layer.
  [[nodiscard]] bool input_gradient_needed() const noexcept { return input_gradient_needed_; }
  void set_input_gradient_needed(bool needed) noexcept { input_gradient_needed_ = needed; }

  /// A flatten says here what its columns were; the next dense layer takes it (see Parameter::flattened).
  void set_flattened(const TensorDesc& sample) { flattened_ = sample; }
  std::optional<TensorDesc> take_flattened();

  /// A line of the plan that --verbose shows and the ranks compare: `conv1 forward: winograd, …`.
  void note(std::string line) { notes_.push_back(std::move(line)); }

  [[nodiscard]] std::span<const ParameterRequest> parameters() const noexcept { return parameters_; }
  [[nodiscard]] std::span<const BufferRequest> buffers() const noexcept { return buffers_; }
  [[nodiscard]] std::span<const std::string> notes() const noexcept { return notes_; }

 private:
  Primitives& primitives_;
  Picker& picker_;
  Mode mode_;
  bool input_gradient_needed_ = false;
  std::optional<TensorDesc> flattened_;
  std::map<std::string, int, std::less<>> counters_;
  std::vector<ParameterRequest> parameters_;
  std::vector<BufferRequest> buffers_;
  std::vector<std::string> notes_;
};

/// Offsets of a planner's buffers in one arena: buffers of a pass one after another, two regions that input gradients
/// take in turn, and one scratch region.
struct BufferPlan {
  std::vector<std::size_t> offsets;  ///< by BufferId
  std::size_t bytes = 0, pass_bytes = 0, gradient_bytes = 0, scratch_bytes = 0;
};
[[nodiscard]] BufferPlan place_buffers(std::span<const BufferRequest> requests);

/// The memory that was asked for.
class Bindings {
 public:
  /// @param device  that the arena lies on
  Bindings(std::span<Parameter> parameters, std::span<const std::size_t> offsets, std::byte* arena, Device device = {})
      : parameters_(parameters), offsets_(offsets), arena_(arena), device_(device) {}
  /// A view that stays valid as long as the strategy.
  [[nodiscard]] Parameter& parameter(ParameterId id) const { return parameters_[index_of(id)]; }
  [[nodiscard]] std::byte* buffer(BufferId id) const { return arena_ + offsets_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] Tensor tensor(BufferId id, const TensorDesc& desc) const { return {desc, buffer(id), device_}; }

 private:
  std::span<Parameter> parameters_;
  std::span<const std::size_t> offsets_;
  std::byte* arena_;
  Device device_;
};

}  // namespace ronda
