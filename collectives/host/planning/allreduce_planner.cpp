#include <ronda/collectives/host/algorithms/wide_mean.hpp>
#include <ronda/collectives/host/planning/allreduce_planner.hpp>
#include <ronda/collectives/tuning/compression_choice.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>

#include <algorithm>

namespace ronda {
namespace {

/// What the runs of a trial may take; and how many there are at most.
constexpr double trial_seconds = 0.005;
constexpr int most_runs = 20;

bool in_node_memory(AllreduceAlgorithm algorithm) {
  const AllreduceRow* const row = find_row(algorithm);
  return row != nullptr && row->in_node_memory();
}

/// Whether any is reduced in memory that the ranks of a node share, which takes barriers.
bool needs_barriers(std::span<const AllreduceChoice> chosen, std::span<const Elements> tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].count > 0 && in_node_memory(chosen[i].algorithm)) return true;
  return false;
}

/// Another one for each collective and each of its tensors.
Noise noise_of(const AllreduceSpec& spec, std::size_t tensor) {
  const auto bits = RngKey(spec.seed, Purpose::compression, spec.label).bits(tensor);
  return Noise(std::uint64_t{bits[0]} << 32 | bits[1]);
}

}  // namespace

const LinkCosts& AllreducePlanner::link_costs() {
  if (!costs_) costs_ = calibration_.measure();
  return *costs_;
}

std::unique_ptr<Collective> AllreducePlanner::plan(const AllreduceSpec& spec, bool often) {
  agreement_.alike([&] { require_fitting(spec.algorithm, DeviceKind::cpu); });
  Plan made = make(spec, often);
  std::erase(made.algorithms, nullptr);
  const AllreduceRow* const row = find_row(made.mostly);
  const bool brief = row != nullptr && made.count > 0 && made.bytes <= row->brief_bytes;
  const std::string_view name = name_of(made.mostly);
  Description description{Kind::allreduce, spec.label, name, made.count, made.dtype, spec.op, -1, brief};
  description.idles = spec.idles;
  auto planned = links_.planned(std::move(made.algorithms), name, description, made.compression);
  planned->expect(made.seconds);
  planned->flush_denormals(spec.flush_denormals);
  return planned;
}

AllreducePlanner::Plan AllreducePlanner::make(const AllreduceSpec& spec, bool often) {
  const int size = members_.size();
  std::vector<Elements> tensors;
  for (const Tensor& tensor : spec.tensors) tensors.push_back(elements_of(tensor));
  for (const Tensor& tensor : spec.exact) tensors.push_back(elements_of(tensor));
  const std::vector<Elements> given = tensors;
  std::vector<Buffer> wide(tensors.size());  // memory for the sums of means of integers and float16
  for (std::size_t i = 0; i < tensors.size() && size > 1; ++i) {
    if (!WideMean::suits(spec.op, tensors[i].dtype)) continue;
    wide[i] = memory_.allocate(WideMean::wide_bytes(tensors[i]), Memory::node_shared);
    tensors[i] = WideMean::wide(tensors[i], wide[i]);
  }

  std::vector<NodeMemory::Site> sites = memory_.locate(tensors);
  std::vector<AllreduceChoice> chosen = choose(spec, tensors, sites, often);
  std::shared_ptr<SharedMemory> barriers;
  if (size > 1 && needs_barriers(chosen, tensors)) {
    std::string refusal;
    barriers = memory_.take_barriers(tensors.size(), refusal);
    if (barriers == nullptr && spec.algorithm != AllreduceAlgorithm::automatic)
      agreement_.alike([&] { throw ResourceError("no shared memory for the node's barriers: " + refusal); });
    if (barriers == nullptr) {
      members_.add_note("no shared memory for the node's barriers: " + refusal + "; " + spec.label +
                        " goes by messages");
      sites.assign(tensors.size(), NodeMemory::Site());
      chosen = choose(spec, tensors, sites, often);
    }
  }
  std::vector<Wire> wires;
  std::size_t largest = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    wires.push_back({chosen[i].compression, noise_of(spec, i)});
    const bool speaks = i < spec.tensors.size() || tensors[largest].count == 0;  // what is exact only goes along
    if (speaks && tensors[i].count > tensors[largest].count) largest = i;
  }

  Plan made;
  made.algorithms.resize(tensors.size());
  for (std::size_t i = 0; i < tensors.size() && size > 1; ++i) {
    if (tensors[i].count == 0) continue;
    const bool is_wide = wide[i].bytes() > 0;
    made.algorithms[i] = make_algorithm(chosen[i].algorithm, {is_wide ? ReduceOp::sum : spec.op, size}, tensors[i],
                                        memory_.copies_of(tensors[i], sites[i], barriers, i), wires[i]);
    if (is_wide)
      made.algorithms[i] =
          std::make_unique<WideMean>(given[i], size, std::move(wide[i]), std::move(made.algorithms[i]));
  }
  for (const Elements& elements : given) {
    made.count += elements.count;
    made.bytes += elements.bytes().size();
  }
  made.mostly = chosen.empty() ? spec.algorithm : chosen[largest].algorithm;
  if (tensors.empty()) return made;
  made.dtype = given[largest].dtype;
  made.compression = wires[largest].compression;
  made.seconds = chosen[largest].seconds;
  return made;
}

/// How each tensor is reduced. Measures the links first where that depends on them and they are not known.
std::vector<AllreduceChoice> AllreducePlanner::choose(const AllreduceSpec& spec, std::span<const Elements> tensors,
                                                      std::span<const NodeMemory::Site> sites, bool often) {
  std::vector<AllreduceChoice> chosen(tensors.size(), {spec.algorithm});
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    AllreduceTask task{spec.algorithm, tensors[i].bytes().size(), sites[i].memory != nullptr};
    if (i < spec.tensors.size())  // by the tensor's type, not that of a mean's wide sums
      agreement_.alike([&] {
        task.compression =
            possible_compression(spec.compression, spec.algorithm, elements_of(spec.tensors[i]), spec.op);
      });
    if (members_.size() == 1 || tensors[i].count == 0) continue;
    if (depends_on_costs(task, members_.topology())) {
      link_costs();
      if (often && tries_) rehearse(task);
    }
    std::optional<CostModel> model;
    if (costs_) model.emplace(*costs_, members_.ranks_of_node(), often);
    agreement_.alike([&] { chosen[i] = choose_allreduce(task, members_.topology(), model ? &*model : nullptr); });
  }
  return chosen;
}

std::unique_ptr<Algorithm> AllreducePlanner::make_algorithm(AllreduceAlgorithm algorithm, const Reduction& reduction,
                                                            const Elements& elements, NodeCopies copies,
                                                            const Wire& wire) {
  const auto by_fabric = [&] { return links_.fabric_allreduces().make(elements, reduction); };
  return find_row(algorithm)->make({.reduction = reduction,
                                    .elements = elements,
                                    .wire = wire,
                                    .copies = std::move(copies),
                                    .slices = members_.topology().fewest_ranks_on_a_node,
                                    .across_all = [&] { return links_.across_all(); },
                                    .across_nodes = [&] { return links_.across_nodes(); },
                                    .by_fabric = by_fabric});
}

// ---- trials ---------------------------------------------------------------------------------------------------------

/// Tries what the model expects to be nearly equal, on memory of its own, until the best is one that was tried. Where
/// the best has no rival from the start, nothing is tried: a formula is compared with formulas alone. The trials are
/// this size's own, so the choice stays the same whatever is asked for before or after; with trials that are known
/// beforehand, as from a plan's file, it comes to the same.
void AllreducePlanner::rehearse(const AllreduceTask& task) {
  constexpr double near = 1.4;
  const CostModel model(*costs_, members_.ranks_of_node());  // sees the trials below
  const std::size_t bytes = model.trial_bytes(task.bytes);
  const auto tried = [&](const AllreduceChoice& choice) {
    return std::ranges::any_of(costs_->trials, [&](const Trial& trial) {
      return trial.algorithm == choice.algorithm && trial.compression == choice.compression &&
             trial.bytes == task.bytes;
    });
  };
  const auto measured_for_another = [&](const AllreduceChoice& choice) {
    return std::ranges::find_if(costs_->trials, [&](const Trial& trial) {
      return trial.algorithm == choice.algorithm && trial.compression == choice.compression &&
             model.trial_bytes(trial.bytes) == bytes;
    });
  };
  bool some = std::ranges::any_of(costs_->trials, [&](const Trial& trial) { return trial.bytes == task.bytes; });
  Buffer memory;
  for (;; some = true) {
    auto rivals = possible_choices(task, members_.topology(), model);
    std::erase_if(rivals, [](const AllreduceChoice& choice) { return !choice.seconds; });
    if (rivals.empty()) return;
    const double best = *std::ranges::min_element(rivals, {}, &AllreduceChoice::seconds)->seconds;
    std::erase_if(rivals, [&](const AllreduceChoice& choice) { return *choice.seconds > near * best; });
    const auto next = std::ranges::find_if_not(rivals, tried);
    if ((rivals.size() == 1 && !some) || next == rivals.end()) return;
    Trial trial{next->algorithm, next->compression, task.bytes, 1};
    if (const auto known = measured_for_another(*next); known != costs_->trials.end()) {
      trial.factor = known->factor;
    } else {
      if (memory.bytes() == 0)
        memory = memory_.allocate(bytes, task.node_shared ? Memory::node_shared : Memory::per_rank);
      trial.factor = try_out(*next, memory);
    }
    costs_->trials.push_back(trial);
    costs_ = LinkCosts::parse(costs_->text());
  }
}

/// How many times as long as its formula has it an allreduce takes.
double AllreducePlanner::try_out(const AllreduceChoice& choice, const Buffer& memory) {
  const std::span data(reinterpret_cast<float*>(memory.data()), memory.bytes() / sizeof(float));
  const bool shared = memory_.contains({memory.data(), data.size(), DType::float32});
  if (in_node_memory(choice.algorithm) && !shared) return 1;  // no room for a second one
  const AllreduceSpec trial{{Tensor(data)}, ReduceOp::sum, choice.algorithm, "a trial", choice.compression};
  const auto run = links_.made_on_all(trial.label, [&] { return plan(trial, true); });
  const double expected = run->times().predicted.value_or(0);
  const int times = std::clamp(static_cast<int>(trial_seconds / std::max(expected, 1e-9)), 1, most_runs);
  run->start().wait();
  const Fabric& fabric = members_.fabric();
  LinkProbe::Seconds seconds{};
  for (double& group : seconds) {
    const double begin = fabric.seconds();
    for (int i = 0; i < times; ++i) run->start().wait();
    group = (fabric.seconds() - begin) / times;
  }
  // What disturbs an algorithm often, does so later too: not the best group counts.
  return expected > 0 ? calibration_.agreed(0, seconds)[LinkProbe::groups / 2] / expected : 1;
}

}  // namespace ronda
