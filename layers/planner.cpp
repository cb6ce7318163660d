#include <ronda/core/error.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/layers/planner.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace ronda {
namespace {

void claim(bool& planned, std::string_view what) {
  if (std::exchange(planned, true))
    throw LogicError(
        std::string(what) +
        " was planned before: its memory is that plan's; a model is planned once, make another for another");
}

}  // namespace

/// As long as this lives, a layer is being planned, within the one before.
class Planner::Planning {
 public:
  /// @param layer  null: a loss
  Planning(Planner& planner, const Layer* layer)
      : planner_(planner),
        layer_(layer),
        buffers_before_(planner.buffers_.size()),
        parameters_before_(planner.parameters_.size()),
        input_gradient_needed_(planner.input_gradient_needed_) {
    // What lies before a composite's first parameter needs no gradient, unless somebody before the composite does.
    if (!planner.within_.empty() && planner.within_.back()->parameters_before_ < parameters_before_)
      planner.input_gradient_needed_ = true;
    planner.tree_.enter(flow());
    planner.within_.push_back(this);
  }
  Planning(const Planning&) = delete;
  ~Planning() {
    planner_.tree_.leave(flow());
    planner_.within_.pop_back();
    planner_.input_gradient_needed_ = input_gradient_needed_;
    if (layer_ != nullptr && layer_->feature_order() == FeatureOrder::logical) planner_.flattened_.reset();
    if (planner_.within_.empty()) planner_.note_uses(buffers_before_);
  }
  [[nodiscard]] bool reads_any_layout() const noexcept { return layer_ != nullptr && layer_->reads_any_layout(); }

 private:
  [[nodiscard]] GradientFlow flow() const noexcept {
    return layer_ == nullptr ? GradientFlow::any : layer_->gradient_flow();
  }

  Planner& planner_;
  const Layer* layer_;
  std::size_t buffers_before_, parameters_before_;
  bool input_gradient_needed_;
};

TensorDesc Planner::plan(Layer& layer, const TensorDesc& input) {
  claim(layer.planned_, "the layer '" + std::string(layer.kind()) + "'");
  const Planning planning(*this, &layer);
  return layer.plan(input, *this);
}

void Planner::plan(Loss& loss, const TensorDesc& outputs) {
  claim(loss.planned_, "the loss");
  const Planning planning(*this, nullptr);
  loss.plan(outputs, *this);
}

std::string Planner::next_name(std::string_view kind) {
  auto [entry, added] = counters_.try_emplace(std::string(kind), 0);
  return entry->first + std::to_string(++entry->second);
}

ParameterId Planner::parameter(ParameterRequest request) {
  for (const auto& other : parameters_)
    if (other.name == request.name) throw InputError("two parameters of the model are called " + request.name);
  parameters_.push_back(std::move(request));
  return ParameterId{static_cast<std::uint32_t>(parameters_.size() - 1)};
}

BufferId Planner::buffer(std::string owner, std::size_t bytes, Lifetime lifetime) {
  constexpr Stretch always{0, std::numeric_limits<std::uint32_t>::max()};
  buffers_.push_back({std::move(owner), bytes, lifetime, always});
  askers_.push_back(tree_.current());
  return BufferId{static_cast<std::uint32_t>(buffers_.size() - 1)};
}

/// Of the buffers from `first` on, whose layers are planned.
void Planner::note_uses(std::size_t first) {
  for (std::size_t i = first; i < buffers_.size(); ++i)
    buffers_[i].used =
        buffers_[i].lifetime == Lifetime::scratch ? tree_.calls_of(askers_[i]) : tree_.gradient_of(askers_[i]);
}

std::optional<TensorDesc> Planner::take_flattened() { return std::exchange(flattened_, std::nullopt); }

bool Planner::may_give_any_layout() const noexcept {
  return within_.size() < 2 || within_[within_.size() - 2]->reads_any_layout();
}

// ---- memory ---------------------------------------------------------------------------------------------------------

namespace {

/// Memory that buffers of one kind share.
class Regions {
 public:
  Regions(std::span<const BufferRequest> requests, Lifetime lifetime) : of_(requests.size()) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < requests.size(); ++i)
      if (requests[i].lifetime == lifetime) order.push_back(i);
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return requests[i].used.from; });
    std::vector<Stretch> last;  // of each region
    for (const std::size_t i : order) {
      const auto free = std::ranges::find_if(last, [&](const Stretch& used) { return !used.meets(requests[i].used); });
      of_[i] = static_cast<std::size_t>(free - last.begin());
      if (free == last.end()) {
        last.push_back(requests[i].used);
        sizes_.push_back(0);
      }
      last[of_[i]] = requests[i].used;
      sizes_[of_[i]] = std::max(sizes_[of_[i]], requests[i].bytes);
    }
  }

  /// Returns what they take together.
  std::size_t reserve(ArenaPlan& arena) {
    std::size_t bytes = 0;
    for (const std::size_t size : sizes_) {
      offsets_.push_back(arena.reserve(size));
      bytes += size;
    }
    return bytes;
  }
  [[nodiscard]] std::size_t offset(std::size_t request) const { return offsets_[of_[request]]; }

 private:
  std::vector<std::size_t> of_;  ///< the region of each request of this kind
  std::vector<std::size_t> sizes_, offsets_;
};

}  // namespace

BufferPlan place_buffers(std::span<const BufferRequest> requests) {
  BufferPlan plan;
  ArenaPlan arena;
  Regions scratch(requests, Lifetime::scratch), gradients(requests, Lifetime::gradient);
  plan.scratch_bytes = scratch.reserve(arena);
  plan.gradient_bytes = gradients.reserve(arena);
  for (std::size_t i = 0; i < requests.size(); ++i) switch (requests[i].lifetime) {
      case Lifetime::pass:
        plan.offsets.push_back(arena.reserve(requests[i].bytes));
        plan.pass_bytes += requests[i].bytes;
        break;
      case Lifetime::gradient: plan.offsets.push_back(gradients.offset(i)); break;
      case Lifetime::scratch: plan.offsets.push_back(scratch.offset(i)); break;
    }
  plan.bytes = arena.bytes();
  return plan;
}

}  // namespace ronda
