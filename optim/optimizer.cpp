#include <ronda/core/denormals.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/finite.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/optim/optimizer.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

namespace ronda {
namespace {

constexpr std::size_t cache_line = 16;           ///< floats
constexpr std::size_t worth_a_thread = 1 << 14;  ///< elements; for fewer, starting threads takes longer than the update
constexpr std::size_t norm_block = 4096;         ///< elements whose squares make one partial sum

int threads_for(std::size_t count, Stream& stream) {
  const std::size_t useful = std::max<std::size_t>(count / worth_a_thread, 1);
  return static_cast<int>(std::min(useful, static_cast<std::size_t>(stream.threads())));
}

/// Eight sums side by side, added in order: the same bits whatever the vectors are.
RONDA_MULTIVERSION double sum_of_squares(const float* values, std::size_t count) {
  std::array<double, 8> sums{};
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (std::size_t lane = 0; lane < 8; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  double total = 0;
  for (const double sum : sums) total += sum;
  for (; i < count; ++i) total += static_cast<double>(values[i]) * values[i];
  return total;
}

}  // namespace

void check_group(const ParameterGroup& group) {
  if (!(group.rate_factor >= 0) || !std::isfinite(group.rate_factor))
    throw InputError("a parameter group's rate factor must be 0 or more, found " + std::to_string(group.rate_factor));
  if (group.weight_decay && (!(*group.weight_decay >= 0) || !std::isfinite(*group.weight_decay)))
    throw InputError("a parameter group's weight decay must be 0 or more, found " +
                     std::to_string(*group.weight_decay));
}

void Optimizer::bind(OptimizerBindings bindings) {
  if (bindings.states.size() != states().size())
    throw LogicError("optimizer " + std::string(name()) + " needs " + std::to_string(states().size()) +
                     " state arenas, " + std::to_string(bindings.states.size()) + " were given");
  for (const auto& group : bindings.groups) check_group(group);
  runs_.clear();
  for (const auto& segment : bindings.segments) {
    const std::size_t end = segment.offset + static_cast<std::size_t>(segment.desc.padded_count());
    if (segment.group >= bindings.groups.size() || segment.desc.dtype != DType::float32 ||
        (!runs_.empty() && segment.offset < runs_.back().end))
      throw LogicError("parameter " + segment.name + " does not fit into the optimizer's arena");
    if (!runs_.empty() && runs_.back().group == segment.group)
      runs_.back().end = end;  // with the gap, which is zero and stays zero
    else
      runs_.push_back({segment.offset, end, segment.group});
  }
  const std::size_t longest = runs_.empty() ? 0 : runs_.back().end;
  partial_sums_.assign(longest / norm_block + 1, 0.0);
  scalars_.resize(bindings.groups.size());
  bindings_ = std::move(bindings);
}

/// Calls body(run) for the part of each unfrozen run that lies in `range`.
template <class Body>
void Optimizer::for_each_run(ArenaRange range, Body&& body) const {
  const auto first = static_cast<std::size_t>(range.values - bindings_.values);
  for (const Run& run : runs_) {
    const std::size_t begin = std::max(run.begin, first), end = std::min(run.end, first + range.count);
    if (begin < end && !bindings_.groups[run.group].frozen) body(Run{begin, end, run.group});
  }
}

bool Optimizer::step(ArenaRange range, const StepScalars& scalars, Stream& stream) {
  const rules::Hyperparameters hyper = hyperparameters();
  for (std::size_t g = 0; g < scalars_.size(); ++g) {
    const ParameterGroup& group = bindings_.groups[g];
    scalars_[g] = rules::scalars_of(hyper, scalars.learning_rate * group.rate_factor,
                                    group.weight_decay.value_or(weight_decay_), scalars.gradient_factor, scalars.step);
  }
  return apply(range, scalars_, stream);
}

bool Optimizer::apply(ArenaRange range, std::span<const rules::Scalars> by_group, Stream& stream) {
  if (bindings_.device.kind != DeviceKind::cpu)
    throw LogicError("the processor cannot update parameters on " + bindings_.device.text());
  const DenormalScope flushing(true);
  const auto first = static_cast<std::size_t>(range.values - bindings_.values);
  const auto state = [&](std::size_t i, std::size_t offset) {
    return i < bindings_.states.size() ? bindings_.states[i] + offset : nullptr;
  };
  std::atomic<bool> finite = true;
  for_each_run(range, [&](const Run& run) {
    const std::size_t count = run.end - run.begin;
    const auto update_part = [&](Range part) {
      const std::size_t at = run.begin + part.begin;
      if (!update({bindings_.values + at, range.gradients + (at - first), state(0, at), state(1, at), part.size(),
                   at - first, range.more_gradients, range.copies},
                  by_group[run.group]))
        finite.store(false, std::memory_order_relaxed);
    };
    parallel_for(threads_for(count, stream), count, update_part, cache_line);
  });
  return finite.load(std::memory_order_relaxed);
}

double Optimizer::squared_norm(ArenaRange range, Stream& stream) {
  const auto first = static_cast<std::size_t>(range.values - bindings_.values);
  double total = 0;
  for_each_run(range, [&](const Run& run) {
    const std::size_t count = run.end - run.begin, blocks = (count + norm_block - 1) / norm_block;
    const float* gradients = range.gradients + (run.begin - first);
    const auto sum_blocks = [&](Range part) {
      for (std::size_t block = part.begin; block < part.end; ++block) {
        const std::size_t begin = block * norm_block;
        partial_sums_[block] = sum_of_squares(gradients + begin, std::min(norm_block, count - begin));
      }
    };
    parallel_for(threads_for(count, stream), blocks, sum_blocks);
    for (std::size_t block = 0; block < blocks; ++block) total += partial_sums_[block];
  });
  return total;
}

bool Optimizer::gradients_are_finite(ArenaRange range, Stream& stream) const {
  const auto first = static_cast<std::size_t>(range.values - bindings_.values);
  bool finite = true;
  for_each_run(range, [&](const Run& run) {
    finite = finite && all_finite(stream.threads(), {range.gradients + (run.begin - first), run.end - run.begin});
  });
  return finite;
}

void Optimizer::visit(StateVisitor& visitor) const {
  for (const auto& segment : bindings_.segments)
    for (std::size_t i = 0; i < states().size(); ++i)
      visitor.visit({segment.name + "." + std::string(states()[i]),
                     Tensor(segment.desc, bindings_.states[i] + segment.offset, bindings_.device), Scope::replicated,
                     segment.flattened});
}

double clip_factor(double norm, double clip) noexcept { return rules::clip(norm, clip); }

}  // namespace ronda
