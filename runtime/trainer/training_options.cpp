#include <ronda/core/error.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

#include <array>
#include <charconv>
#include <cmath>

namespace ronda {
namespace {

/// The shortest digits that read back to the same number.
std::string text_of(double value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}
std::string text_of(std::uint64_t value) { return std::to_string(value); }
std::string text_of(bool value) { return value ? "yes" : "no"; }
/// The path itself may differ from host to host.
std::string text_of(const std::filesystem::path& path) { return path.empty() ? "not given" : "given"; }
template <class T>
std::string text_of(const std::optional<T>& value, const char* otherwise) {
  return value ? text_of(*value) : otherwise;
}

/// Takes options down in order.
class Words {
 public:
  Words& add(std::string name, std::string value, bool matters = false) {
    list.push_back({std::move(name), std::move(value), matters});
    return *this;
  }
  Words& add_learning(const TrainingOptions& o) {
    const OptimizerOptions& optimizer = o.optimizer;
    const auto read = [&](const char* field) { return optimizer_reads(optimizer.name, field); };
    return add("optimizer", optimizer.name, true)
        .add("momentum", text_of(optimizer.momentum), read("momentum"))
        .add("beta1", text_of(optimizer.beta1), read("beta1"))
        .add("beta2", text_of(optimizer.beta2), read("beta2"))
        .add("epsilon", text_of(optimizer.epsilon), read("epsilon"))
        .add("weight-decay", text_of(optimizer.weight_decay, "the optimizer's"), true)
        .add("learning-rate", text_of(o.learning_rate), true)
        .add("scale-learning-rate", o.scale_learning_rate, true)
        .add("schedule", o.schedule, true)
        .add("warmup-epochs", text_of(o.warmup_epochs, "the schedule's"), true)
        .add("clip-norm", text_of(o.clip_norm), true)
        .add("initializer", std::string(name_of(o.initializer)))
        .add("seed", text_of(o.seed), true)
        .add("shuffle", text_of(o.shuffle), true);
  }
  Words& add_data_and_placement(const TrainingOptions& o) {
    return add("model", o.application + ", " + o.variant, true)
        .add("epochs", text_of(o.epochs, "not given"))
        .add("steps", text_of(o.steps, "not given"))
        .add("batch-size", text_of(o.batch_size))
        .add("global-batch-size", text_of(o.global_batch_size), true)
        .add("accumulate", text_of(o.accumulate))
        .add("device", std::string(name_of(o.device)))
        .add("steps-in-flight", text_of(std::uint64_t{o.steps_in_flight}))
        .add("dtype", std::string(name_of(o.precision)), true)
        .add("nondeterministic", text_of(o.nondeterministic))
        .add("allreduce", std::string(name_of(o.allreduce)))
        .add("compression", std::string(name_of(o.compression)), true)
        .add("bucket-bytes", text_of(o.bucket_bytes))
        .add("memory-limit", text_of(o.memory_limit));
  }
  Words& add_files(const TrainingOptions& o) {
    return add("init", text_of(o.init))
        .add("save", text_of(o.save))
        .add("plan", text_of(o.plan))
        .add("summary-json", text_of(o.summary_json))
        .add("metrics", text_of(o.metrics))
        .add("predictions", text_of(o.predictions));
  }
  Words& add_resilience(const TrainingOptions& o) {
    add("checkpoint-dir", text_of(o.checkpoint_dir))
        .add("checkpoint-every",
             text_of(o.checkpoint_every.steps) + " steps, " + text_of(o.checkpoint_every.seconds) + " s")
        .add("keep", text_of(o.keep))
        .add("resume", text_of(o.resume))
        .add("resume-from", text_of(o.resume_from))
        .add("exact", text_of(o.exact))
        .add("time-limit", text_of(o.time_limit))
        .add("audit-every", text_of(o.audit_every))
        .add("on-divergence", std::string(name_of(o.on_divergence)))
        .add("on-nonfinite", o.on_nonfinite ? std::string(name_of(*o.on_nonfinite)) : "not given");
    for (const auto& name : o.allow_changes) add("allow-changes", name);
    for (const auto& fault : o.faults) add("inject", text_of(fault));
    return *this;
  }

  std::vector<OptionInWords> list;
};

void check_sizes(const TrainingOptions& o) {
  if (o.batch_size > 0 && o.global_batch_size > 0)
    throw InputError("the batch is given a rank (--batch-size) or over all ranks (--global-batch-size), not both");
  if (o.batch_size > std::size_t{1} << 40)
    throw InputError("--batch-size " + std::to_string(o.batch_size) + " is beyond any memory");
  if (o.accumulate == 0) throw InputError("--accumulate is at least 1");
  if (o.steps_in_flight == 0) throw InputError("one step in flight is the least");
  if (o.steps == 0U || o.epochs == 0U) throw InputError("--steps and --epochs are at least 1");
  if (o.threads < 0) throw InputError("--threads cannot be negative");
  for (const double value : {o.clip_norm, o.warmup_epochs.value_or(0)})
    if (!(value >= 0) || !std::isfinite(value))
      throw InputError("--clip-norm and --warmup-epochs are numbers from 0 on, not " + text_of(value));
}

void check_resilience(const TrainingOptions& o) {
  const bool saves = !o.checkpoint_dir.empty();
  if (!saves && (o.resume || o.checkpoint_every.steps > 0 || o.checkpoint_every.seconds > 0 || o.time_limit > 0))
    throw InputError("--resume, --checkpoint-every and --time-limit need --checkpoint-dir");
  if (o.resume && !o.resume_from.empty())
    throw InputError("the newest checkpoint is taken (--resume) or a certain one (--resume-from), not both");
  if (o.on_nonfinite == OnNonfinite::rollback && !saves)
    throw InputError(
        "--on-nonfinite rollback goes back to a checkpoint: it needs --checkpoint-dir and --checkpoint-every");
  if (o.keep == 0) throw InputError("--keep is at least 1");
}

}  // namespace

void check(const TrainingOptions& options) {
  if (options.precision != Precision::float32 && options.device != DeviceChoice::cuda)
    throw InputError("--dtype " + std::string(name_of(options.precision)) +
                     " is for GPUs, with --device cuda; on the processor a training computes in float32");
  if (options.nondeterministic && options.device != DeviceChoice::cuda)
    throw InputError("--nondeterministic is for GPUs, with --device cuda; on the processor equal runs have equal bits");
  if (options.nondeterministic && options.exact)
    throw InputError("--exact promises equal bits, and --nondeterministic gives them up; take one of them");
  check_sizes(options);
  check_resilience(options);
}

EngineRules engine_rules(const TrainingOptions& options) noexcept {
  return {options.precision, !options.nondeterministic};
}

std::vector<OptionInWords> in_words(const TrainingOptions& options) {
  Words words;
  words.add_data_and_placement(options).add_learning(options).add_files(options).add_resilience(options);
  return std::move(words.list);
}

}  // namespace ronda
