#include <ronda/core/error.hpp>
#include <ronda/core/process.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/checkpoint/outputs.hpp>
#include <ronda/runtime/io/atomic_file.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>
#include <ronda/runtime/trainer/cluster_roles.hpp>
#include <ronda/runtime/trainer/resumption.hpp>
#include <ronda/runtime/trainer/training_setup.hpp>
#include <ronda/runtime/trainer/version.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace ronda {
namespace {

constexpr std::size_t default_global_batch = 128;

void complete_batches(TrainingOptions& options, std::size_t ranks, std::size_t samples) {
  if (options.batch_size > 0) options.global_batch_size = options.batch_size * ranks;
  if (options.global_batch_size == 0) options.global_batch_size = default_global_batch;
  options.global_batch_size = std::min(options.global_batch_size, samples);
  const std::size_t largest_part = (options.global_batch_size + ranks - 1) / ranks;
  if (options.accumulate > largest_part)
    throw InputError(setting("accumulate", options.accumulate) + " micro-batches are more than the " +
                     counted(largest_part, "sample") + " of a step that a rank has; give at most as many");
}

void complete_length(TrainingSetup& setup, std::uint64_t steps_per_epoch, std::uint64_t epochs_done) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const TrainingOptions& options = setup.options;
  const std::uint64_t wanted = options.steps.value_or(most);
  const std::uint64_t epochs = options.epochs.value_or(options.steps ? (wanted - 1) / steps_per_epoch + 1 : 1);
  if (epochs > most / steps_per_epoch) throw InputError("so many epochs cannot be counted");
  const std::uint64_t steps = std::min(wanted, epochs * steps_per_epoch);
  if (steps > most - setup.first_step) throw InputError("so many steps cannot be counted");
  setup.total_steps = setup.first_step + steps;
  setup.epochs = epochs_done + (steps - 1) / steps_per_epoch + 1;
}

/// Checks the outputs before the training, not after.
void require_outputs(const TrainingOptions& options) {
  const std::vector<Output> outputs = outputs_of(options);
  const auto* servers = options.strategy.as<ParameterServer>();
  require_apart(outputs, {options.init, options.resume_from, servers == nullptr ? "" : servers->cluster});
  for (const Output& output : outputs)
    if (!output.path.empty() && !output.folder) check_creatable(output.path);
}

}  // namespace

TrainingSetup complete(TrainingOptions given, const World& world, const Dataset& train, std::uint64_t steps,
                       std::uint64_t epochs, const std::vector<std::string>& own) {
  if (train.size() == 0) throw InputError("there are no training samples");
  check(given);
  TrainingSetup setup{.options = std::move(given), .first_step = steps};
  TrainingOptions& options = setup.options;
  place_servers(options, world.communicator().topology().hosts, own);
  if (const auto* servers = options.strategy.as<ParameterServer>()) require_sense(servers->key_values(), world.size());
  const Shard shard = data_shard(options, world.communicator());
  complete_batches(options, shard.count, train.size());
  options.optimizer = completed(options.optimizer);
  if (!options.learning_rate) options.learning_rate = default_learning_rate(options.optimizer.name);
  setup.threads = count_threads(options.threads, world.cores());
  setup.prefetch = world.cores() > setup.threads.count && !world.communicator().topology().oversubscribed;
  complete_length(setup, training_plan(options, shard, train).steps_per_epoch(), epochs);
  setup.options_that_matter = options_that_matter(options, setup.total_steps, train);
  if (world.rank() == 0) require_outputs(options);
  return setup;
}

void require_equal_on_ranks(const TrainingSetup& setup, const Communicator& communicator, const Dataset& test) {
  require_equal(communicator, "the training data", setup.options_that_matter.at("data"));
  std::string test_data;
  agree(communicator, [&] { test_data = text_of(test); });
  require_equal(communicator, "the test data", test_data);
  std::string lines;
  for (const auto& option : in_words(setup.options)) lines += option.name + " " + option.value + "\n";
  if (const auto* servers = setup.options.strategy.as<ParameterServer>())
    for (const int rank : servers->server_ranks) lines += "server rank " + std::to_string(rank) + "\n";
  require_equal(communicator, "the options", lines);
}

Shard data_shard(const TrainingOptions& options, const Communicator& communicator) {
  return shard_of(communicator, options.strategy, true);
}

BatchPlan training_plan(const TrainingOptions& options, Shard shard, const Dataset& train) {
  return {train.size(), options.global_batch_size, shard, options.accumulate};
}

namespace {

std::uint64_t warmup_steps(const TrainingSetup& setup, const BatchPlan& plan) {
  const TrainingOptions& options = setup.options;
  const double usual =
      schedule_row(options.schedule).warmup * static_cast<double>(setup.total_steps - setup.first_step);
  constexpr double for_ever = 1e15;  // steps; a whole number, as all below it
  const double warmup =
      options.warmup_epochs ? *options.warmup_epochs * static_cast<double>(plan.steps_per_epoch()) : usual;
  return static_cast<std::uint64_t>(std::llround(std::min(warmup, for_ever)));
}

}  // namespace

Message warmup_warning(const TrainingSetup& setup, const BatchPlan& plan) {
  const std::uint64_t steps = setup.total_steps - setup.first_step, warmup = warmup_steps(setup, plan);
  if (warmup <= steps) return {};
  return "the warm-up of " + std::to_string(warmup) + " steps is longer than the training of " + std::to_string(steps) +
         ": the rate grows to " + formatted("%.0f %%", 100 * static_cast<double>(steps) / static_cast<double>(warmup)) +
         " of " + setting("learning_rate") + "; give a smaller " + setting("warmup_epochs") + ", or train longer";
}

Schedule schedule_of(const TrainingSetup& setup, const BatchPlan& plan) {
  const TrainingOptions& options = setup.options;
  const std::uint64_t steps = setup.total_steps - setup.first_step;
  return Schedule({.name = options.schedule,
                   .learning_rate = *options.learning_rate,
                   .total_steps = steps,
                   .warmup_steps = warmup_steps(setup, plan),
                   .scaling = options.scale_learning_rate,
                   .global_batch = options.global_batch_size,
                   .steps_per_epoch = plan.steps_per_epoch(),
                   .gamma = options.gamma,
                   .restart_epochs = options.restart_epochs,
                   .restart_factor = options.restart_factor,
                   .pct_start = options.pct_start,
                   .div_factor = options.div_factor,
                   .final_div_factor = options.final_div_factor});
}

std::map<std::string, std::string> environment_of(const World& world, const Primitives& primitives,
                                                  const std::vector<int>& threads_of_ranks) {
  const auto names = world.communicator().gather_texts(processor_name() + ", " + vector_instructions());
  std::string processors;
  for (const auto& name : std::set<std::string>(names.begin(), names.end()))
    processors += (processors.empty() ? "" : "; ") + name;
  return {{"processor", processors},
          {"library", primitives.name()},
          {"ronda", version()},
          {"threads", text_of_threads(threads_of_ranks)},
          {"ranks a node", std::to_string(world.communicator().topology().most_ranks_on_a_node)}};
}

std::string text_of_threads(const std::vector<int>& threads_of_ranks) {
  std::map<int, std::string, std::greater<>> ranks_with;
  const int ranks = static_cast<int>(threads_of_ranks.size());
  const auto threads_of = [&](int rank) { return threads_of_ranks[static_cast<std::size_t>(rank)]; };
  for (int first = 0; first < ranks;) {
    int last = first;
    while (last + 1 < ranks && threads_of(last + 1) == threads_of(first)) ++last;
    std::string& text = ranks_with[threads_of(first)];
    text += (text.empty() ? "" : ", ") + std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
    first = last + 1;
  }
  if (ranks_with.size() == 1) return std::to_string(ranks_with.begin()->first);
  return listed(ranks_with, [](const auto& entry) {
    const bool one = entry.second.find_first_not_of("0123456789") == std::string::npos;
    return std::to_string(entry.first) + (one ? " (rank " : " (ranks ") + entry.second + ")";
  });
}

}  // namespace ronda
