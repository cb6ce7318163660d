#include <ronda/layers/program.hpp>
#include <ronda/runtime/strategy/parts/whole_model.hpp>
#include <ronda/runtime/strategy/replica/arena_memory.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

/// All elements of a tensor, padding included.
Tensor stored_numbers(const Tensor& tensor) {
  return {{Shape{tensor.desc().padded_count()}, tensor.dtype(), {}}, tensor.data()};
}

void draw(const GraphParameter& described, const Parameter& parameter, Initializer usual, std::uint64_t seed) {
  ronda::initialize(parameter, described.initializer.value_or(usual), described.fan_in, described.fan_out, seed);
  if (!described.zero_row) return;
  const auto width = static_cast<std::size_t>(described.shape[1]);
  std::ranges::fill(parameter.value.as<float>().subspan(static_cast<std::size_t>(*described.zero_row) * width, width),
                    0.0F);
}

bool lies_in(const Tensor& tensor, const Buffer& buffer) noexcept {
  return tensor.data() >= buffer.data() && tensor.data() < buffer.data() + buffer.bytes();
}

}  // namespace

WholeModel::WholeModel(ModelPartition partition, std::size_t part, bool keeps_average)
    : partition_(std::move(partition)), part_(part), in_replica_(partition_.parameters.size(), nullptr) {
  ArenaPlan arena;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < partition_.parameters.size(); ++i)
    places.push_back(is_copied(i) ? arena.reserve(partition_.parameters[i].stored.bytes()) : 0);
  values_ = Buffer::host(arena.bytes());
  if (keeps_average) average_ = Buffer::host(arena.bytes());
  for (std::size_t i = 0; i < partition_.parameters.size(); ++i) {
    const ModelPartition::OfParameter& of = partition_.parameters[i];
    Parameter& parameter = parameters_.emplace_back();
    if (!is_copied(i)) continue;  // by bind
    parameter.id = ParameterId{static_cast<std::uint32_t>(i)};
    parameter.name = of.described.name;
    parameter.value = Tensor(of.stored, values_.data() + places[i]);
    parameter.flattened = of.flattened;
  }
}

void WholeModel::bind(const Replica& replica) {
  replica_ = &replica;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::span<const Parameter> mine = replica.parameters();
    const auto found = std::ranges::find(mine, partition_.parameters[i].described.name, &Parameter::name);
    if (found == mine.end()) continue;
    in_replica_[i] = &*found;
    if (is_copied(i)) continue;
    parameters_[i] = *found;
    parameters_[i].id = ParameterId{static_cast<std::uint32_t>(i)};
  }
  StateList mine;
  replica.visit_layer_states(mine);
  for (const ModelPartition::OfState& of : partition_.states) {
    if (of.owner.value_or(part_) == part_) {
      states_.push_back(*std::ranges::find(mine.states(), of.described.name, &State::name));
      continue;
    }
    const Buffer& copy = copied_states_.emplace_back(Buffer::host(desc_of(of.described).bytes()));
    states_.push_back({of.described.name, Tensor(desc_of(of.described), copy.data()), of.described.scope});
    set_initial(of.described, states_.back().tensor);
  }
}

void WholeModel::initialize(Initializer usual, std::uint64_t seed) {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    draw(partition_.parameters[i].described, parameters_[i], usual, seed);
  spread();
}

// ---- what it shows --------------------------------------------------------------------------------------------------

Tensor WholeModel::average_of(const Parameter& parameter) const {
  const Tensor& value = parameter.value;
  const bool copied = lies_in(value, values_);
  const Buffer& average = copied ? average_ : replica_->average();
  if (average.bytes() == 0) return {};
  const Buffer& values = copied ? values_ : replica_->values();
  return {value.desc(), average.data() + (value.data() - values.data())};
}

void WholeModel::visit_parameters(StateVisitor& visitor) const {
  for (const Parameter& parameter : parameters_)
    visitor.visit({parameter.name, parameter.trained(), Scope::replicated, parameter.flattened});
}

void WholeModel::visit_average(StateVisitor& visitor) const {
  for (const Parameter& parameter : parameters_)
    if (const Tensor average = average_of(parameter); !average.empty())
      visitor.visit({parameter.name + ".ema", average, Scope::replicated, parameter.flattened});
}

void WholeModel::visit_layer_states(StateVisitor& visitor) const {
  for (const State& state : states_) visitor.visit(state);
}

void WholeModel::restart_average() const { std::copy_n(values_.data(), average_.bytes(), average_.data()); }

void WholeModel::swap_average() const {
  std::swap_ranges(average_.data(), average_.data() + average_.bytes(), values_.data());
}

// ---- between the ranks ----------------------------------------------------------------------------------------------

template <class Body>
void WholeModel::for_each_sliced(std::size_t parameter, Body&& body) const {
  const Parameter& whole = parameters_[parameter];
  const Parameter* const mine = in_replica_[parameter];
  const auto in = [&](const Buffer& average) {
    return mine == nullptr
               ? Tensor()
               : Tensor(mine->value.desc(), average.data() + (mine->value.data() - replica_->values().data()));
  };
  body(whole.value, mine == nullptr ? Tensor() : mine->value);
  if (average_.bytes() > 0) body(average_of(whole), in(replica_->average()));
}

void WholeModel::gather(Communicator& group) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const ModelPartition::OfParameter& of = partition_.parameters[i];
    if (of.slices)
      for_each_sliced(i, [&](const Tensor& whole, const Tensor& mine) { gather_slices(group, i, whole, mine); });
    if (!of.owner) continue;
    group.broadcast(stored_numbers(parameters_[i].value), static_cast<int>(*of.owner));
    if (const Tensor average = average_of(parameters_[i]); !average.empty())
      group.broadcast(stored_numbers(average), static_cast<int>(*of.owner));
  }
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (const auto& owner = partition_.states[i].owner)
      group.broadcast(stored_numbers(states_[i].tensor), static_cast<int>(*owner));
}

/// @param mine  this rank's slice; empty: it has none
void WholeModel::gather_slices(Communicator& group, std::size_t parameter, const Tensor& whole,
                               const Tensor& mine) const {
  const ParameterSlices& slices = *partition_.parameters[parameter].slices;
  std::vector<float> given;
  if (!mine.empty()) given = to_file(*in_replica_[parameter], mine);
  std::vector<std::size_t> counts;
  for (std::size_t part = 0; part < partition_.parts; ++part) counts.push_back(slices.count(part));
  const std::span<float> numbers = whole.as<float>();
  std::vector<float> all(numbers.size());
  group.allgather(Tensor(std::span(given)), Tensor(std::span(all)), counts);
  std::span<const float> left = all;
  for (std::size_t part = 0; part < counts.size(); ++part) {
    slices.put(left.first(counts[part]), part, numbers);
    left = left.subspan(counts[part]);
  }
}

void WholeModel::spread() const {
  std::vector<float> taken;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& slices = partition_.parameters[i].slices;
    if (!slices || in_replica_[i] == nullptr) continue;
    for_each_sliced(i, [&](const Tensor& whole, const Tensor& mine) {
      taken.resize(slices->count(part_));
      slices->take(whole.as<const float>(), part_, taken);
      from_file(*in_replica_[i], taken, mine);
    });
  }
}

void WholeModel::broadcast(Communicator& all) const {
  for (const Parameter& parameter : parameters_) {
    std::vector<float> numbers = to_file(parameter, parameter.value);
    all.broadcast(Tensor(std::span(numbers)));
    from_file(parameter, numbers, parameter.value);
  }
  spread();
}

}  // namespace ronda
