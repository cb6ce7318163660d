#include <ronda/core/denormals.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/floats.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/core/number.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/text.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/updater.hpp>
#include <ronda/optim/update_kernels.hpp>
#include <ronda/optim/update_loop.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

namespace ronda {
namespace {

constexpr std::size_t cache_line = 16;     ///< floats
constexpr std::size_t norm_block = 4096;   ///< elements whose squares make one partial sum
constexpr std::size_t layer_block = 1024;  ///< elements that are widened, updated and rounded in a first-level cache

/// Eight sums side by side, added in order: the same bits whatever the vectors are.
RONDA_MULTIVERSION double squares(const float* values, std::size_t count, float limit) {
  std::array<double, 8> sums{};
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (std::size_t lane = 0; lane < 8; ++lane) {
      const double value = clipped(values[i + lane], limit);
      sums[lane] += value * value;
    }
  double total = 0;
  for (const double sum : sums) total += sum;
  for (; i < count; ++i) {
    const double value = clipped(values[i], limit);
    total += value * value;
  }
  return total;
}

}  // namespace

void check_group(const ParameterGroup& group) {
  if (!(group.rate_factor >= 0) || !std::isfinite(group.rate_factor))
    throw InputError("a parameter group's rate factor must be 0 or more, found " + shortest(group.rate_factor));
  if (group.weight_decay && (!(*group.weight_decay >= 0) || !std::isfinite(*group.weight_decay)))
    throw InputError("a parameter group's weight decay must be 0 or more, found " + shortest(*group.weight_decay));
}

void Optimizer::bind(OptimizerBindings bindings) {
  if (bindings.states.size() != states().size())
    throw LogicError("optimizer " + std::string(name()) + " needs " + std::to_string(states().size()) +
                     " state arenas, " + std::to_string(bindings.states.size()) + " were given");
  for (const auto& group : bindings.groups) check_group(group);
  if (bindings.kept && has_two_passes())
    throw LogicError("optimizer " + std::string(name()) + " works on whole parameters, and needs all of their states");
  std::size_t free = 0, longest = 0;
  steps_.clear();
  for (const auto& segment : bindings.segments) {
    const auto count = static_cast<std::size_t>(segment.desc.padded_count());
    if (segment.group >= bindings.groups.size() || segment.desc.dtype != DType::float32 || segment.offset < free)
      throw LogicError("parameter " + segment.name + " does not fit into the optimizer's arena");
    if (segment.touched != nullptr && needs_norms())
      throw InputError("optimizer " + std::string(name()) + " needs norms of whole parameters, and the gradient of " +
                       segment.name + " is sparse; take another optimizer, or an embedding with " +
                       setting("sparse", "false"));
    free = segment.offset + count;
    longest = std::max(longest, count);
    steps_.push_back({.dimensions = static_cast<int>(segment.desc.shape.rank())});
  }
  norms_of_sums_.assign(steps_.size(), 0.0);
  partial_sums_.assign(longest / norm_block + 1, 0.0);
  bindings_ = std::move(bindings);
  plan(bindings_.segments);
  prepare(steps_);
}

/// Calls body(parameter, its part of the `count` values) for each that is not frozen and lies there; of a sparse table
/// for each row that is touched, or its part.
template <class Body>
void Optimizer::for_each_part(const float* values, std::size_t count, Body&& body) const {
  const auto first = static_cast<std::size_t>(values - bindings_.values);
  for (std::size_t i = 0; i < bindings_.segments.size(); ++i) {
    const ArenaSegment& segment = bindings_.segments[i];
    const std::size_t end = segment.offset + static_cast<std::size_t>(segment.desc.padded_count());
    const Range part{std::max(segment.offset, first), std::min(end, first + count)};
    if (part.begin >= part.end || bindings_.groups[segment.group].frozen) continue;
    if (segment.touched == nullptr) {
      body(i, part);
      continue;
    }
    const auto width = static_cast<std::size_t>(segment.desc.shape[1]);
    for (const std::int32_t row : segment.touched->rows()) {
      const std::size_t begin = segment.offset + static_cast<std::size_t>(row) * width;
      const Range mine = overlap_of({begin, begin + width}, part);
      if (mine.size() > 0) body(i, mine);
    }
  }
}

void Optimizer::set_steps(const StepScalars& scalars) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const ParameterGroup& group = bindings_.groups[bindings_.segments[i].group];
    steps_[i].learning_rate = scalars.learning_rate * group.rate_factor;
    steps_[i].weight_decay = group.weight_decay.value_or(weight_decay_);
    steps_[i].gradient_factor = scalars.gradient_factor;
    steps_[i].step = scalars.step;
    steps_[i].gradient_norm = norms_of_sums_[i] * scalars.gradient_factor;
  }
  prepare(steps_);
}

bool Optimizer::keeps_zeros(const StepScalars& scalars, std::size_t parameter) const noexcept {
  return scalars.keeps_zeros && bindings_.groups[bindings_.segments[parameter].group].pruned;
}

float* Optimizer::state(std::size_t i, std::size_t offset) const noexcept {
  const std::size_t first = bindings_.kept ? bindings_.kept->begin : 0;
  return i < bindings_.states.size() ? bindings_.states[i] + (offset - first) : nullptr;
}

template <class UpdatePart>
bool Optimizer::update_parts(const float* values, std::size_t count, const StepScalars& scalars, Stream& stream,
                             UpdatePart&& update_part) {
  if (bindings_.device.kind != DeviceKind::cpu)
    throw LogicError("the processor cannot update parameters on " + bindings_.device.text());
  const DenormalScope flushing(true);
  set_steps(scalars);
  std::atomic<bool> finite = true;
  for_each_part(values, count, [&](std::size_t parameter, Range whole) {
    const auto update_some = [&](Range part) {
      if (!update_part(parameter, Range{whole.begin + part.begin, whole.begin + part.end}))
        finite.store(false, std::memory_order_relaxed);
    };
    parallel_for(threads_for(whole.size(), stream), whole.size(), update_some, cache_line);
  });
  return finite.load(std::memory_order_relaxed);
}

bool Optimizer::step(ArenaRange range, const StepScalars& scalars, Stream& stream) {
  const auto first = static_cast<std::size_t>(range.values - bindings_.values);
  return update_parts(range.values, range.count, scalars, stream, [&](std::size_t parameter, Range part) {
    const std::size_t at = part.begin;
    return update({bindings_.values + at,
                   range.gradients + (at - first),
                   {state(0, at), state(1, at), state(2, at)},
                   part.size(),
                   at - first,
                   scalars.gradient_limit,
                   range.more_gradients,
                   range.copies,
                   keeps_zeros(scalars, parameter)},
                  parameter);
  });
}

bool Optimizer::step(const LayerRange& range, const StepScalars& scalars, Stream& stream) {
  return update_parts(range.values, range.count, scalars, stream, [&](std::size_t parameter, Range part) {
    bool finite = true;
    for (std::size_t at = part.begin; at < part.end; at += layer_block)
      finite = update_block(range, at, std::min(layer_block, part.end - at), scalars, parameter) && finite;
    return finite;
  });
}

/// Some elements, which stay in the first cache from their gradients' widening to their values' rounding.
bool Optimizer::update_block(const LayerRange& range, std::size_t at, std::size_t count, const StepScalars& scalars,
                             std::size_t parameter) const noexcept {
  const std::size_t place = at - static_cast<std::size_t>(range.values - bindings_.values);
  const std::byte* const gradients = range.gradients + place * size_of(range.dtype);
  alignas(64) std::array<float, layer_block> wide;
  const float* read = wide.data();
  switch (range.dtype) {
    case DType::bfloat16: convert(reinterpret_cast<const BFloat16*>(gradients), wide.data(), count); break;
    case DType::float16: convert(reinterpret_cast<const Float16*>(gradients), wide.data(), count); break;
    default: read = reinterpret_cast<const float*>(gradients);
  }
  float* const values = bindings_.values + at;
  const bool finite = update({values,
                              read,
                              {state(0, at), state(1, at), state(2, at)},
                              count,
                              place,
                              scalars.gradient_limit,
                              {},
                              {},
                              keeps_zeros(scalars, parameter)},
                             parameter);
  std::byte* const rounded = range.rounded + place * size_of(range.layer_dtype);
  if (range.layer_dtype == DType::bfloat16)
    convert(values, reinterpret_cast<BFloat16*>(rounded), count);
  else
    convert(values, reinterpret_cast<Float16*>(rounded), count);
  return finite;
}

/// Blocks of fixed size are summed, by `sum_block` of their ranges, and then added in order.
template <class SumBlock>
double Optimizer::sum_blocks(std::size_t count, Stream& stream, SumBlock&& sum_block) {
  const std::size_t blocks = (count + norm_block - 1) / norm_block;
  const auto sum_some = [&](Range part) {
    for (std::size_t block = part.begin; block < part.end; ++block) {
      const std::size_t begin = block * norm_block;
      partial_sums_[block] = sum_block(Range{begin, std::min(begin + norm_block, count)});
    }
  };
  parallel_for(threads_for(count, stream), blocks, sum_some);
  double total = 0;
  for (std::size_t block = 0; block < blocks; ++block) total += partial_sums_[block];
  return total;
}

double Optimizer::sum_of_squares(const float* numbers, std::size_t count, Stream& stream, float limit) {
  return sum_blocks(count, stream, [&](Range block) { return squares(numbers + block.begin, block.size(), limit); });
}

double Optimizer::squared_norm(ArenaRange range, Stream& stream) {
  const auto first = static_cast<std::size_t>(range.values - bindings_.values);
  double total = 0;
  for_each_part(range.values, range.count, [&](std::size_t parameter, Range part) {
    if (!bindings_.groups[bindings_.segments[parameter].group].counted) return;
    total += sum_of_squares(range.gradients + (part.begin - first), part.size(), stream);
  });
  return total;
}

bool Optimizer::gradients_are_finite(ArenaRange range, Stream& stream) const {
  const auto first = static_cast<std::size_t>(range.values - bindings_.values);
  bool finite = true;
  for_each_part(range.values, range.count, [&](std::size_t, Range part) {
    finite =
        finite && all_finite(threads_for(part.size(), stream), {range.gradients + (part.begin - first), part.size()});
  });
  return finite;
}

void Optimizer::measure(const float* gradients, const StepScalars& scalars, Stream& stream) {
  const DenormalScope flushing(true);
  if (has_two_passes()) set_steps(scalars);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const ArenaSegment& segment = bindings_.segments[i];
    if (bindings_.groups[segment.group].frozen) continue;
    const auto count = static_cast<std::size_t>(segment.desc.padded_count());
    steps_[i].value_norm = std::sqrt(sum_of_squares(bindings_.values + segment.offset, count, stream));
    if (has_two_passes()) {
      steps_[i].update_norm = std::sqrt(propose_all(i, gradients, scalars.gradient_limit, stream));
      complete(i, steps_[i].update_norm, Tensor(segment.desc, state(1, segment.offset)), stream);
    } else {
      norms_of_sums_[i] = std::sqrt(sum_of_squares(gradients + segment.offset, count, stream, scalars.gradient_limit));
    }
  }
}

/// The first pass over a parameter.
double Optimizer::propose_all(std::size_t parameter, const float* gradients, float limit, Stream& stream) {
  const ArenaSegment& segment = bindings_.segments[parameter];
  return sum_blocks(static_cast<std::size_t>(segment.desc.padded_count()), stream, [&](Range block) {
    const std::size_t at = segment.offset + block.begin;
    return propose(
        {bindings_.values + at, gradients + at, {state(0, at), state(1, at), nullptr}, block.size(), at, limit, {}, {}},
        parameter);
  });
}

void Optimizer::visit(StateVisitor& visitor) const {
  if (bindings_.kept) return;
  for (const auto& segment : bindings_.segments)
    for (std::size_t i = 0; i < states().size(); ++i)
      visitor.visit({segment.name + "." + std::string(states()[i]),
                     Tensor(segment.desc, bindings_.states[i] + segment.offset, bindings_.device), Scope::replicated,
                     segment.flattened});
}

std::vector<StatePiece> Optimizer::pieces() const {
  std::vector<StatePiece> pieces;
  if (!bindings_.kept) return pieces;
  for (const auto& segment : bindings_.segments) {
    const std::size_t stored = static_cast<std::size_t>(segment.desc.padded_count());
    const std::size_t begin = std::max(segment.offset, bindings_.kept->begin),
                      end = std::min(segment.offset + stored, bindings_.kept->end);
    const std::size_t count = begin < end ? end - begin : 0;
    for (std::size_t i = 0; i < states().size(); ++i) {
      float* const elements = count > 0 ? state(i, begin) : nullptr;
      const Tensor whole(segment.desc, count == stored ? elements : nullptr, bindings_.device);
      pieces.push_back(
          {.whole = {segment.name + "." + std::string(states()[i]), whole, Scope::sharded, segment.flattened},
           .elements = elements,
           .first = count > 0 ? begin - segment.offset : 0,
           .count = count});
    }
  }
  return pieces;
}

double clip_factor(double norm, double clip) noexcept { return update_kernels::clip(norm, clip); }

void refuse_both_clips(double clip_norm, double clip_value) {
  if (clip_norm > 0 && clip_value > 0)
    throw InputError("the mean gradient is clipped by its norm (" + setting("clip_norm") + ") or by value (" +
                     setting("clip_value") + "), not both");
}

}  // namespace ronda
