#include <ronda/core/hash.hpp>
#include <ronda/core/names.hpp>
#include <ronda/runtime/checkpoint/replica_audit.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

namespace ronda {
namespace {

constexpr EnumNames<OnDivergence, 2> divergence_names{{
    {OnDivergence::stop, "stop"},
    {OnDivergence::rollback, "rollback"},
}};

bool is_over_there(const State& state) { return state.tensor.device().kind != DeviceKind::cpu; }

/// A device's first.
std::vector<State> replicated(std::span<const State> states) {
  std::vector<State> some;
  std::ranges::copy_if(states, std::back_inserter(some), [](const State& s) { return s.scope == Scope::replicated; });
  std::stable_partition(some.begin(), some.end(), is_over_there);
  return some;
}

std::size_t count_over_there(std::span<const State> states) {
  return static_cast<std::size_t>(std::ranges::count_if(states, is_over_there));
}

std::span<const std::byte> bytes_of(const State& state) { return {state.tensor.data(), state.tensor.desc().bytes()}; }

std::unique_ptr<DeviceHash> hash_over_there(std::span<const State> states, std::size_t count, DeviceContext& device) {
  if (count == 0) return nullptr;
  std::vector<std::span<const std::byte>> pieces;
  for (const State& state : states.first(count)) pieces.push_back(bytes_of(state));
  return device.make_hash(pieces);
}

std::span<float> numbers_of(const State& state) {
  return {state.tensor.pointer<float>(), state.tensor.desc().bytes() / sizeof(float)};
}

std::string list(const std::vector<int>& ranks, const HostNames& hosts) {
  std::string text;
  for (const int rank : ranks)
    text += (text.empty() ? "" : ", ") + std::string("rank ") + std::to_string(rank) + " on " +
            hosts[static_cast<std::size_t>(rank)];
  return text;
}

}  // namespace

OnDivergence parse_on_divergence(std::string_view name) {
  return parse_name(divergence_names, name, "a choice for replicas that differ");
}

std::string_view name_of(OnDivergence choice) noexcept { return find_name(divergence_names, choice); }

ReplicaAudit::ReplicaAudit(Communicator communicator, std::span<const State> states, const ComputeDevice& device)
    : communicator_(std::move(communicator)),
      device_(device),
      states_(replicated(states)),
      over_there_(count_over_there(states_)),
      device_hash_(hash_over_there(states_, over_there_, *device_.context)),
      hashes_(states_.size()),
      words_(communicator_.allocate(2 * sizeof(std::int64_t), Memory::node_shared)),
      minimum_(communicator_.plan(
          AllreduceSpec{.tensors = {Tensor(std::span(reinterpret_cast<std::int64_t*>(words_.data()), 2))},
                        .op = ReduceOp::minimum,
                        .label = "the audit of the replicas"})),
      copy_({states.begin(), states.end()}, device_) {}

void ReplicaAudit::hash_states() {
  if (device_hash_) device_hash_->run(std::span(hashes_).first(over_there_), *device_.stream);
  for (std::size_t i = over_there_; i < states_.size(); ++i) hashes_[i] = Hash().add(bytes_of(states_[i])).value();
}

bool ReplicaAudit::equal() {
  hash_states();
  const auto mine = static_cast<std::int64_t>(Hash().add(std::as_bytes(std::span(hashes_))).value());
  auto* words = reinterpret_cast<std::int64_t*>(words_.data());
  words[0] = mine;
  words[1] = ~mine;
  minimum_->start().wait();
  return words[0] == ~words[1];  // the least is the greatest
}

ReplicaAudit::Finding ReplicaAudit::majority() {
  const auto all = communicator_.gather_texts(
      {reinterpret_cast<const char*>(hashes_.data()), hashes_.size() * sizeof(std::uint64_t)});
  std::map<std::string, std::vector<int>> ranks_of;
  for (std::size_t rank = 0; rank < all.size(); ++rank) ranks_of[all[rank]].push_back(static_cast<int>(rank));
  const auto most = std::ranges::max_element(ranks_of, {}, [](const auto& group) { return group.second.size(); });
  std::vector<int> odd;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] != most->first) odd.push_back(static_cast<int>(rank));
  const bool clear = 2 * most->second.size() > all.size();
  // The first state in which somebody is not like most; without a majority, not like rank 0.
  const std::string& model = clear ? most->first : all[0];
  std::size_t first = states_.size();
  for (const std::string& text : all) {
    const auto byte = std::ranges::mismatch(text, model).in1 - text.begin();
    first = std::min(first, static_cast<std::size_t>(byte) / sizeof(std::uint64_t));
  }
  return accuse(clear ? odd : std::vector<int>(), states_[std::min(first, states_.size() - 1)].name);
}

void ReplicaAudit::go_back() {
  suspects_.emplace(states_, device_);
  suspects_->take();
  copy_.give_back();
}

ReplicaAudit::Finding ReplicaAudit::judge() {
  StatesOnHost suspects(suspects_->copies(), device_), found(states_, device_);
  suspects.fetch();
  found.fetch();
  found.wait();
  std::vector<double> farthest(1, 0);
  std::string first;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].tensor.dtype() != DType::float32) continue;  // a counter
    const std::span<const float> suspect = numbers_of(suspects.states()[i]), right = numbers_of(found.states()[i]);
    std::vector<float> least(suspect.begin(), suspect.end()), most(least);
    communicator_.allreduce(Tensor(std::span(least)), ReduceOp::minimum);
    communicator_.allreduce(Tensor(std::span(most)), ReduceOp::maximum);
    for (std::size_t k = 0; k < suspect.size(); ++k) {
      if (least[k] == most[k]) continue;  // all ranks are off alike
      if (first.empty()) first = states_[i].name;
      const double distance = std::abs(static_cast<double>(suspect[k]) - static_cast<double>(right[k]));
      farthest[0] = std::max(farthest[0], std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance);
    }
  }
  suspects_.reset();
  std::vector<double> by_rank(static_cast<std::size_t>(communicator_.size()));
  communicator_.allgather(Tensor(std::span(farthest)), Tensor(std::span(by_rank)));
  const double most = *std::ranges::max_element(by_rank);
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
    if (by_rank[rank] == most) ranks.push_back(static_cast<int>(rank));
  if (ranks.size() == by_rank.size()) ranks.clear();  // all as far: nobody can be told
  return accuse(std::move(ranks), first);
}

ReplicaAudit::Finding ReplicaAudit::accuse(std::vector<int> ranks, const std::string& state) const {
  Finding finding{std::move(ranks), state, {}};
  finding.text = finding.ranks.empty()
                     ? "which rank erred cannot be told; the first state that differs is " + state
                     : list(finding.ranks, communicator_.topology().hosts) + " erred, first in " + state;
  return finding;
}

}  // namespace ronda
