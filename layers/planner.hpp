#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/parameter.hpp>
#include <ronda/layers/initializer.hpp>
#include <ronda/layers/pass.hpp>
#include <ronda/layers/picker.hpp>
#include <ronda/layers/plan_tree.hpp>

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
  gradient,  ///< an input gradient: in backward, until the layer before has used it (see Layer::backward); shared
  scratch,   ///< within one call of one layer, calls of the layers that it is made of included; shared
};
enum class BufferId : std::uint32_t {};
struct BufferRequest {
  std::string owner;  ///< what it is for: `conv1 output`
  std::size_t bytes;
  Lifetime lifetime;
  Stretch used = {};  ///< when, of a shared one
};

/// Is asked for everything a model needs, and remembers it; the strategy then takes memory once and makes `Bindings`.
class Planner {
 public:
  Planner(Primitives& primitives, Picker& picker, Mode mode) : primitives_(primitives), picker_(picker), mode_(mode) {}

  /// Plans a layer, or a layer that the one being planned is made of; returns what it will give. A layer is planned
  /// once, and so is a loss: their memory is one plan's. Throws LogicError where it was planned before; what the
  /// layer's own plan throws, and then it counts as planned too.
  TensorDesc plan(Layer& layer, const TensorDesc& input);
  void plan(Loss& loss, const TensorDesc& outputs);

  [[nodiscard]] Primitives& primitives() const noexcept { return primitives_; }
  [[nodiscard]] Picker& picker() const noexcept { return picker_; }
  /// In `evaluation` nothing is kept for a backward pass and no gradients are planned.
  [[nodiscard]] Mode mode() const noexcept { return mode_; }

  /// `conv1`, `conv2`, …: the next name of that kind.
  std::string next_name(std::string_view kind);

  /// Throws InputError when the name was taken before.
  ParameterId parameter(ParameterRequest request);
  BufferId buffer(std::string owner, std::size_t bytes, Lifetime lifetime);

  /// Whether somebody needs the gradient of what the layer being planned is given: a parameter that was planned before
  /// within the same composite, or whoever gives to that. False for a model's first layer.
  [[nodiscard]] bool input_gradient_needed() const noexcept { return input_gradient_needed_; }
  void set_input_gradient_needed(bool needed) noexcept { input_gradient_needed_ = needed; }

  /// What the features that the last layer gives are, where they do not come in (C, H, W) order: a sample of an image,
  /// whose bytes are the features in their order. A flatten says so; a dense layer takes it (see Parameter::flattened).
  void set_flattened(const TensorDesc& sample) { flattened_ = sample; }
  [[nodiscard]] const std::optional<TensorDesc>& flattened() const noexcept { return flattened_; }
  std::optional<TensorDesc> take_flattened();

  /// Whether the layer being planned may give features in another order than (C, H, W), and images in a layout that is
  /// not plain: only to layers that are known to read them.
  [[nodiscard]] bool may_give_any_feature_order() const noexcept { return tree_.in_chain(); }
  [[nodiscard]] bool may_give_any_layout() const noexcept;

  /// A line of the plan that --verbose shows and the ranks compare: `conv1 forward: winograd, …`.
  void note(std::string line) { notes_.push_back(std::move(line)); }

  [[nodiscard]] std::span<const ParameterRequest> parameters() const noexcept { return parameters_; }
  /// Once all is planned.
  [[nodiscard]] std::span<const BufferRequest> buffers() const noexcept { return buffers_; }
  [[nodiscard]] std::span<const std::string> notes() const noexcept { return notes_; }

 private:
  class Planning;
  void note_uses(std::size_t first);

  Primitives& primitives_;
  Picker& picker_;
  Mode mode_;
  PlanTree tree_;
  std::vector<const Planning*> within_;  ///< the layers being planned, each within the one before
  bool input_gradient_needed_ = false;
  std::optional<TensorDesc> flattened_;
  std::map<std::string, int, std::less<>> counters_;
  std::vector<ParameterRequest> parameters_;
  std::vector<BufferRequest> buffers_;
  std::vector<std::size_t> askers_;  ///< the node of each buffer
  std::vector<std::string> notes_;
};

/// Offsets of a planner's buffers in one arena: buffers of a pass one after another, and regions that input gradients
/// and scratch share, each with its own kind, where they are not in use at the same time. Of layers one after another
/// that are two regions for gradients and one for scratch.
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
