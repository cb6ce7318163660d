#include <ronda/runtime/strategy/split/whole_values.hpp>

#include <algorithm>

namespace ronda {

WholeValues::WholeValues(const SplitModel& model, std::size_t part, bool average) : model_(model), part_(part) {
  values_ = Buffer::host(bytes(model));
  if (average) average_ = Buffer::host(bytes(model));
  std::size_t place = 0;
  for (const GraphParameter& described : model.whole().parameters) {
    places_.push_back(place);
    place += static_cast<std::size_t>(described.shape.count());
    Parameter& parameter = parameters_.emplace_back();
    parameter.id = ParameterId{static_cast<std::uint32_t>(parameters_.size() - 1)};
    parameter.name = described.name;
    parameter.value = tensor_in(values_, parameters_.size() - 1);
  }
}

Tensor WholeValues::tensor_in(const Buffer& arena, std::size_t parameter) const {
  const TensorDesc plain{model_.whole().parameters[parameter].shape, DType::float32, {}};
  return {plain, arena.data() + places_[parameter] * sizeof(float)};
}

void WholeValues::initialize(Initializer usual, std::uint64_t seed) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const GraphParameter& described = model_.whole().parameters[i];
    ronda::initialize(parameters_[i], described.initializer.value_or(usual), described.fan_in, described.fan_out, seed);
    if (!described.zero_row) continue;
    const auto width = static_cast<std::size_t>(described.shape[1]);
    std::ranges::fill(
        parameters_[i].value.as<float>().subspan(static_cast<std::size_t>(*described.zero_row) * width, width), 0.0F);
  }
  restart_average();
  spread();
}

void WholeValues::visit_parameters(StateVisitor& visitor) const {
  for (const Parameter& parameter : parameters_) visitor.visit({parameter.name, parameter.value, Scope::replicated});
}

void WholeValues::visit_average(StateVisitor& visitor) const {
  for (std::size_t i = 0; i < parameters_.size() && average_.bytes() > 0; ++i)
    visitor.visit({parameters_[i].name + ".ema", tensor_in(average_, i), Scope::replicated});
}

Tensor WholeValues::average_of(const Parameter& parameter) const {
  return average_.bytes() > 0 ? tensor_in(average_, index_of(parameter.id)) : Tensor();
}

void WholeValues::restart_average() const { std::copy_n(values_.data(), average_.bytes(), average_.data()); }

void WholeValues::swap_average() const {
  std::swap_ranges(average_.data(), average_.data() + average_.bytes(), values_.data());
}

Tensor WholeValues::all() const {
  return {{Shape{static_cast<std::int64_t>(values_.bytes() / sizeof(float))}, DType::float32, {}}, values_.data()};
}

std::vector<WholeValues::Arena> WholeValues::arenas() const {
  std::vector<Arena> all{{&values_, replica_->values().data()}};
  if (average_.bytes() > 0) all.push_back({&average_, replica_->average().data()});
  return all;
}

Tensor WholeValues::of_part(ParameterId id, std::byte* arena) const {
  const Tensor& value = replica_->parameters()[index_of(id)].value;
  return {value.desc(), arena + (value.data() - replica_->values().data())};
}

void WholeValues::gather(Communicator& group) const {
  for (const Arena& arena : arenas())
    for (std::size_t i = 0; i < parameters_.size(); ++i) gather(group, i, arena);
}

void WholeValues::gather(Communicator& group, std::size_t parameter, const Arena& arena) const {
  const auto id = model_.in_part(part_, parameter);
  std::vector<float> mine;
  if (id) mine = to_file(replica_->parameters()[index_of(*id)], of_part(*id, arena.part));
  const std::span<float> whole = tensor_in(*arena.whole, parameter).as<float>();
  const auto& slices = model_.slices(parameter);
  if (!slices) {
    std::ranges::copy(mine, whole.begin());
    return;
  }
  std::vector<std::size_t> counts;
  for (std::size_t part = 0; part < model_.parts(); ++part) counts.push_back(slices->count(part));
  std::vector<float> all(whole.size());
  group.allgather(Tensor(std::span(mine)), Tensor(std::span(all)), counts);
  std::span<const float> left = all;
  for (std::size_t part = 0; part < counts.size(); ++part) {
    slices->put(left.first(counts[part]), part, whole);
    left = left.subspan(counts[part]);
  }
}

void WholeValues::spread() const {
  std::vector<float> mine;
  for (const Arena& arena : arenas())
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const auto id = model_.in_part(part_, i);
      if (!id) continue;
      std::span<const float> given = tensor_in(*arena.whole, i).as<const float>();
      if (const auto& slices = model_.slices(i)) {
        mine.resize(slices->count(part_));
        slices->take(given, part_, mine);
        given = mine;
      }
      from_file(replica_->parameters()[index_of(*id)], given, of_part(*id, arena.part));
    }
}

}  // namespace ronda
