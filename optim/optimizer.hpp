#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/parallel.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/state_piece.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/core/touched_rows.hpp>
#include <ronda/optim/rule.hpp>

namespace ronda {

/// What changes from step to step.
struct StepScalars {
  double learning_rate = 0;
  double gradient_factor = 1;  ///< the gradient arena holds sums: times this they are the mean (and clipped)
  std::uint64_t step = 1;      ///< updates so far + 1, for Adam's bias correction
  float gradient_limit = std::numeric_limits<float>::infinity();  ///< sums of gradients are clipped to ± this first
  bool keeps_zeros = false;                                       ///< zeros stay zero in parameters that are pruned
};

/// Part of the parameters and their gradients, float32. Where gradients are still to be summed, or others hold the same
/// parameters, the update does both as it passes: `more_gradients` are added to `gradients` in their order, and each of
/// `copies` is given the new values. All point at the range's first element; copies are 64-byte aligned with `values`.
struct ArenaRange {
  float* values = nullptr;  ///< within the arena of `OptimizerBindings`
  const float* gradients = nullptr;
  std::size_t count = 0;
  std::span<const float* const> more_gradients = {};
  std::span<float* const> copies = {};
};

/// Elements of one parameter.
struct ArenaPart {
  float* values;
  const float* gradients;
  std::array<float*, 3> states;  ///< null where the rule has fewer
  std::size_t count;
  std::size_t offset;    ///< of the first element in the range, where the spans begin
  float gradient_limit;  ///< as in StepScalars
  std::span<const float* const> more_gradients;
  std::span<float* const> copies;
  bool keeps_zeros = false;  ///< elements that are zero stay zero
};

/// Parameters that are treated alike.
struct ParameterGroup {
  double rate_factor = 1;                   ///< times the learning rate
  std::optional<double> weight_decay = {};  ///< the optimizer's own where there is none
  bool frozen = false;                      ///< neither updated nor counted in the norm
  bool pruned = false;                      ///< where the updater keeps zeros, those of these stay zero: see prune
  bool counted = true;  ///< in the norm; not where another rank has the same gradient of the same model
};

/// Throws InputError for a rate factor or a decay that is negative or not finite.
void check_group(const ParameterGroup& group);

/// A range of arenas of parameters whose layers read a half type.
struct LayerRange {
  float* values = nullptr;               ///< that are trained
  const std::byte* gradients = nullptr;  ///< sums over the ranks
  DType dtype = DType::float32;          ///< of these
  std::byte* rounded = nullptr;          ///< the values once more, as layers read them
  DType layer_dtype = DType::bfloat16;   ///< of these, a half type
  std::size_t count = 0;
};

/// Where a parameter lies in the arena.
struct ArenaSegment {
  std::string name;  ///< as in files: `conv1.weight`
  TensorDesc desc;
  std::size_t offset = 0;                    ///< elements from the start of the arena
  std::size_t group = 0;                     ///< of `OptimizerBindings::groups`
  std::optional<TensorDesc> flattened = {};  ///< as in Parameter
  const TouchedRows* touched = nullptr;      ///< as in Parameter; outlives the optimizer
};

/// The memory that an optimizer works on; the caller owns it and keeps it as long as the optimizer.
struct OptimizerBindings {
  float* values = nullptr;          ///< the arena of parameters
  std::vector<float*> states = {};  ///< one arena for each of `Optimizer::states()`, as long as the parameters', zeroed
  std::vector<ArenaSegment> segments = {};  ///< ascending, without overlap
  std::vector<ParameterGroup> groups = {ParameterGroup{}};
  Device device = {};  ///< where values and states lie; see Updater
  /// The elements of which the states are here: `states` then hold these alone. From a multiple of 16 elements on.
  /// Nothing: all.
  std::optional<Range> kept = {};
};

/// An update rule, applied to a range of the arena in one pass: reads gradients, parameters and state, writes
/// parameters and state. What lies between parameters, and their padding, is zero and stays zero. Elements are updated
/// each for itself, so the bits depend neither on threads nor on ranges. A denormal number counts as zero, so that the
/// state of a weight without gradients ends at zero (see DenormalScope). Allocates nothing after bind.
///
/// Of a table with a sparse gradient the touched rows alone are updated, and counted in norms: the others keep values
/// and states, also momentum, and have no weight decay. For Adam that is PyTorch's SparseAdam, but for epsilon, which
/// is Adam's; the bias correction counts all updates.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// What is kept for each parameter, in PyTorch's names: {"exp_avg", "exp_avg_sq"} for Adam.
  [[nodiscard]] virtual std::span<const std::string_view> states() const noexcept = 0;
  /// Whether the rule reads norms of whole parameters: see `measure`.
  [[nodiscard]] virtual bool needs_norms() const noexcept = 0;
  /// Whether `measure` is the first of two passes over the elements: see TwoPassRule.
  [[nodiscard]] virtual bool has_two_passes() const noexcept = 0;
  /// Whether it is for processors, and gradients in float32, alone: it has no rule that a kernel could apply.
  [[nodiscard]] virtual bool on_processor_alone() const noexcept { return false; }
  [[nodiscard]] double weight_decay() const noexcept { return weight_decay_; }  ///< for groups that do not say

  /// Throws LogicError for bindings that contradict themselves, InputError for a bad group, and for a sparse table
  /// where the rule needs norms. Where `kept` is a part, LogicError for sparse tables and for a rule of two passes,
  /// which needs the states of whole parameters; `step` is for ranges within that part then.
  void bind(OptimizerBindings bindings);
  /// Returns whether all parameters and states that were updated are finite: a look at what is in registers anyway.
  bool step(ArenaRange range, const StepScalars& scalars, Stream& stream);
  /// The same where layers read a half type, which is written as well: in one pass over memory.
  bool step(const LayerRange& range, const StepScalars& scalars, Stream& stream);
  /// Before `step` of a rule that needs them: the norms of all parameters, and of their gradients in the whole arena. A
  /// rule of two passes brings the states of all parameters forward. In float64; the bits do not depend on threads.
  void measure(const float* gradients, const StepScalars& scalars, Stream& stream);
  /// The sum of the squares of `range.gradients`, as they are there (without gradient_factor), in float64.
  /// Blocks of fixed size are summed and then added in order, so the bits do not depend on threads.
  [[nodiscard]] double squared_norm(ArenaRange range, Stream& stream);
  /// Whether all of `range.gradients` but those of frozen parameters are finite; where they are, so is squared_norm.
  [[nodiscard]] bool gradients_are_finite(ArenaRange range, Stream& stream) const;
  /// Shows each state of each parameter in the parameter's own layout: `conv1.weight.exp_avg`. The number of updates so
  /// far is the caller's (see StepScalars). Nothing where a part of the states is kept: see pieces.
  void visit(StateVisitor& visitor) const;
  /// What is kept of each state of each parameter, in the order of `visit`; empty where all is kept.
  [[nodiscard]] std::vector<StatePiece> pieces() const;
  [[nodiscard]] const OptimizerBindings& bindings() const noexcept { return bindings_; }

 protected:
  /// @param weight_decay  for groups that do not say
  explicit Optimizer(double weight_decay) : weight_decay_(weight_decay) {}

  /// Updates some elements, and tells whether they are finite; called from several threads at once, for different ones.
  /// Must not throw.
  [[nodiscard]] virtual bool update(const ArenaPart& part, std::size_t parameter) const noexcept = 0;
  /// The first of two passes over some elements, as `update`; returns the sum of the squares of what it proposes.
  [[nodiscard]] virtual double propose(const ArenaPart& part, std::size_t parameter) const noexcept = 0;
  /// What is left to do between the two passes with what was proposed for a whole parameter.
  /// @param norm      its 2-norm
  /// @param proposal  the parameter's second state, in the parameter's layout
  virtual void complete(std::size_t /*parameter*/, double /*norm*/, const Tensor& /*proposal*/, Stream& /*stream*/) {}
  /// Makes room, when the optimizer is bound, for what it needs of these parameters.
  virtual void plan(std::span<const ArenaSegment> /*segments*/) {}
  /// Works out what the next updates need of each parameter.
  virtual void prepare(std::span<const RuleStep> steps) = 0;

 private:
  template <class Body>
  void for_each_part(const float* values, std::size_t count, Body&& body) const;
  /// What `update_part(parameter, part)` returns of all parts.
  template <class UpdatePart>
  [[nodiscard]] bool update_parts(const float* values, std::size_t count, const StepScalars& scalars, Stream& stream,
                                  UpdatePart&& update_part);
  [[nodiscard]] bool update_block(const LayerRange& range, std::size_t at, std::size_t count,
                                  const StepScalars& scalars, std::size_t parameter) const noexcept;
  [[nodiscard]] bool keeps_zeros(const StepScalars& scalars, std::size_t parameter) const noexcept;
  void set_steps(const StepScalars& scalars);
  [[nodiscard]] double sum_of_squares(const float* numbers, std::size_t count, Stream& stream,
                                      float limit = std::numeric_limits<float>::infinity());
  template <class SumBlock>
  [[nodiscard]] double sum_blocks(std::size_t count, Stream& stream, SumBlock&& sum_block);
  [[nodiscard]] double propose_all(std::size_t parameter, const float* gradients, float limit, Stream& stream);
  [[nodiscard]] float* state(std::size_t i, std::size_t offset) const noexcept;

  double weight_decay_;
  OptimizerBindings bindings_;
  std::vector<RuleStep> steps_;        ///< by parameter
  std::vector<double> norms_of_sums_;  ///< of gradients, by parameter, as measured
  std::vector<double> partial_sums_;   ///< of blocks of squares
};

/// What gradients of this 2-norm are multiplied with so that it becomes at most `clip`: PyTorch's clip_grad_norm_,
/// clip / (norm + 1e-6), at most 1. NaN where the norm is NaN.
[[nodiscard]] double clip_factor(double norm, double clip) noexcept;

}  // namespace ronda
