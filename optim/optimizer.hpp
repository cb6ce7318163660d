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
#include <ronda/core/stream.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/optim/rule.hpp>

namespace ronda {

/// Numbers that change from step to step.
struct StepScalars {
  double learning_rate = 0;
  double gradient_factor = 1;  ///< sum of gradients times this: the mean gradient (clipped)
  std::uint64_t step = 1;      ///< number of this update, from 1, for Adam's bias correction
  float gradient_limit = std::numeric_limits<float>::infinity();  ///< sums of gradients are clipped to ± this first
  bool keeps_zeros = false;                                       ///< zeros of pruned parameters stay zero
};

/// A range of the parameters and their gradients, float32. The update can also sum gradients and write copies in the
/// same pass: it adds `more_gradients` to `gradients` in their order, and writes the new values to each of `copies`.
/// All pointers point to the first element of the range. Copies are 64-byte aligned with `values`.
struct ArenaRange {
  float* values = nullptr;  ///< in the arena of `OptimizerBindings`
  const float* gradients = nullptr;
  std::size_t count = 0;
  std::span<const float* const> more_gradients = {};
  std::span<float* const> copies = {};
};

/// A range of elements of one parameter.
struct ArenaPart {
  float* values;
  const float* gradients;
  std::array<float*, 3> states;  ///< null beyond the rule's states
  std::size_t count;
  std::size_t offset;    ///< index of the first element in the ArenaRange, where the arrays of the spans begin
  float gradient_limit;  ///< as in StepScalars
  std::span<const float* const> more_gradients;
  std::span<float* const> copies;
  bool keeps_zeros = false;  ///< zero elements stay zero
};

/// Options of a group of parameters.
struct ParameterGroup {
  double rate_factor = 1;                   ///< multiplies the learning rate
  std::optional<double> weight_decay = {};  ///< `nullopt`: the optimizer's
  bool frozen = false;                      ///< neither updated nor part of the norm
  bool pruned = false;                      ///< zeros stay zero while the updater keeps zeros: see prune
  bool counted = true;  ///< part of the norm; false if another rank has the same gradient of the same model
};

/// Throws InputError if a rate factor or a decay is negative or not finite.
void check_group(const ParameterGroup& group);

/// A range of the arenas if the layers read parameters of a half type.
struct LayerRange {
  float* values = nullptr;               ///< the trained values
  const std::byte* gradients = nullptr;  ///< sums over the ranks
  DType dtype = DType::float32;          ///< type of the gradients
  std::byte* rounded = nullptr;          ///< the values, rounded for the layers
  DType layer_dtype = DType::bfloat16;   ///< type of the rounded values, a half type
  std::size_t count = 0;
};

/// The place of a parameter in the arena.
struct ArenaSegment {
  std::string name;  ///< as in files: `conv1.weight`
  TensorDesc desc;
  std::size_t offset = 0;                    ///< elements from the start of the arena
  std::size_t group = 0;                     ///< index in `OptimizerBindings::groups`
  std::optional<TensorDesc> flattened = {};  ///< as in Parameter
  const TouchedRows* touched = nullptr;      ///< as in Parameter; outlives the optimizer
};

/// The memory that an optimizer works on. The caller owns it; it outlives the optimizer.
struct OptimizerBindings {
  float* values = nullptr;          ///< the arena of parameters
  std::vector<float*> states = {};  ///< one arena for each of `Optimizer::states()`, as long as the parameters', zeroed
  std::vector<ArenaSegment> segments = {};  ///< ascending, without overlap
  std::vector<ParameterGroup> groups = {ParameterGroup{}};
  Device device = {};  ///< holds the values and states; see Updater
  /// The elements whose states are stored here; `states` then have only these. Begins at a multiple of 16. `nullopt`:
  /// all elements.
  std::optional<Range> kept = {};
};

/// An update rule, applied to a range of the arena in one pass: reads gradients, parameters and state, writes
/// parameters and state. Padding and the gaps between parameters are zero and stay zero. Elements are updated
/// independently, so the bits depend neither on threads nor on ranges. Denormal numbers count as zero, so that the
/// state of a weight without gradients becomes zero (see DenormalScope). Allocates nothing after bind.
///
/// In a table with a sparse gradient only the touched rows are updated and are part of norms. The other rows keep their
/// values and states, including momentum, and have no weight decay. For Adam this is PyTorch's SparseAdam, except that
/// epsilon is used as in Adam; the bias correction counts all updates.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Names of the states of each parameter, as in PyTorch: {"exp_avg", "exp_avg_sq"} for Adam.
  [[nodiscard]] virtual std::span<const std::string_view> states() const noexcept = 0;
  /// Whether the rule reads norms of whole parameters: see `measure`.
  [[nodiscard]] virtual bool needs_norms() const noexcept = 0;
  /// Whether `measure` is the first of two passes over the elements: see TwoPassRule.
  [[nodiscard]] virtual bool has_two_passes() const noexcept = 0;
  /// Whether the optimizer runs only on the processor, with float32 gradients: it has no rule for a kernel.
  [[nodiscard]] virtual bool on_processor_alone() const noexcept { return false; }
  [[nodiscard]] double weight_decay() const noexcept { return weight_decay_; }  ///< for groups that do not say

  /// Throws LogicError for inconsistent bindings, and InputError for an invalid group or for a sparse table with a rule
  /// that needs norms. If `kept` is a part, `step` takes only ranges within it, and bind throws LogicError for sparse
  /// tables and for rules of two passes, which need the states of whole parameters.
  void bind(OptimizerBindings bindings);
  /// Returns whether all updated parameters and states are finite; they are checked in registers.
  bool step(ArenaRange range, const StepScalars& scalars, Stream& stream);
  /// The same if layers read a half type: also writes the rounded values, in the same pass over memory.
  bool step(const LayerRange& range, const StepScalars& scalars, Stream& stream);
  /// Computes the norms of all parameters and of their gradients; call it before `step` if the rule needs norms. For a
  /// rule of two passes it also updates the states of all parameters. In float64; the bits do not depend on threads.
  void measure(const float* gradients, const StepScalars& scalars, Stream& stream);
  /// The sum of the squares of `range.gradients`, without gradient_factor, in float64. Blocks of fixed size are summed
  /// and then added in order, so the bits do not depend on threads.
  [[nodiscard]] double squared_norm(ArenaRange range, Stream& stream);
  /// Whether all of `range.gradients`, except those of frozen parameters, are finite; squared_norm then is finite too.
  [[nodiscard]] bool gradients_are_finite(ArenaRange range, Stream& stream) const;
  /// Shows each state of each parameter in the parameter's own layout: `conv1.weight.exp_avg`. The caller counts the
  /// updates (see StepScalars). Visits nothing if only a part of the states is kept: see pieces.
  void visit(StateVisitor& visitor) const;
  /// The kept part of each state of each parameter, in the order of `visit`; empty if all states are kept.
  [[nodiscard]] std::vector<StatePiece> pieces() const;
  [[nodiscard]] const OptimizerBindings& bindings() const noexcept { return bindings_; }

 protected:
  /// @param weight_decay  for groups without one
  explicit Optimizer(double weight_decay) : weight_decay_(weight_decay) {}

  /// Updates some elements and returns whether they are finite. Called by several threads concurrently, for disjoint
  /// elements. Must not throw.
  [[nodiscard]] virtual bool update(const ArenaPart& part, std::size_t parameter) const noexcept = 0;
  /// The first of two passes, for some elements as in `update`; returns the sum of the squares of the proposed updates.
  [[nodiscard]] virtual double propose(const ArenaPart& part, std::size_t parameter) const noexcept = 0;
  /// Called between the two passes, for each whole parameter.
  /// @param norm      2-norm of the proposal
  /// @param proposal  the proposed update: the parameter's second state, in the parameter's layout
  virtual void complete(std::size_t /*parameter*/, double /*norm*/, const Tensor& /*proposal*/, Stream& /*stream*/) {}
  /// Called by bind: allocates the memory that the rule needs for these parameters.
  virtual void plan(std::span<const ArenaSegment> /*segments*/) {}
  /// Computes the scalars of each parameter for the next updates.
  virtual void prepare(std::span<const RuleStep> steps) = 0;

 private:
  template <class Body>
  void for_each_part(const float* values, std::size_t count, Body&& body) const;
  /// Whether `update_part(parameter, part)` returns true for all parts.
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
  std::vector<double> norms_of_sums_;  ///< norms of the sums of gradients, by parameter, from `measure`
  std::vector<double> partial_sums_;   ///< sums of squares by block
};

/// The factor that reduces gradients of this 2-norm to at most `clip`: clip / (norm + 1e-6), at most 1, as PyTorch's
/// clip_grad_norm_. NaN if the norm is NaN.
[[nodiscard]] double clip_factor(double norm, double clip) noexcept;

}  // namespace ronda
