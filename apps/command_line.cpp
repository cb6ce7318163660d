#include "command_line.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <span>
#include <sstream>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/listed.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/runtime/trainer/leave.hpp>
#include <ronda/runtime/trainer/version.hpp>

#include "tool.hpp"

namespace ronda::apps {
namespace {

/// The optimizers that read a field of OptimizerOptions: `adam and adamw`.
std::string readers_of(std::string_view field) {
  std::vector<OptimizerRow> readers;
  std::ranges::copy_if(optimizer_rows(), std::back_inserter(readers),
                       [&](const OptimizerRow& row) { return optimizer_reads(row.name, field); });
  return listed(
      readers, [](const OptimizerRow& row) { return row.name; }, " and ");
}

constexpr const char* default_optimizer = "nesterov";

/// Of a text that is known to be a number. Given as a check, which CLI11's own would begin to explain with digits.
std::string why_not_positive(const std::string& text) {
  return std::strtod(text.c_str(), nullptr) > 0 ? "" : text + " is not above 0";
}

}  // namespace

std::filesystem::path find_mnist() {
  std::error_code ignored;  // a folder that cannot be looked into has no data for us
  auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (; folder.has_relative_path(); folder = folder.parent_path())
    for (const char* place : {"share/mnist", "share/ronda/mnist"})
      if (std::filesystem::is_directory(folder / place, ignored)) return folder / place;
  return {};
}

CommandLine::CommandLine(std::string application, const std::string& description, Defaults defaults)
    : data(find_mnist()), app_(description, application), defaults_(defaults) {
  training.application = std::move(application);
  training.optimizer.name = default_optimizer;
  training.schedule = "cosine";
  app_.option_defaults()->always_capture_default();
  app_.allow_config_extras(CLI::config_extras_mode::error);
  app_.set_version_flag("--version", training.application + " (Ronda) " + version(), "The version")->group("Output");
  app_.get_formatter()->column_width(42);
  app_.set_help_flag("-h,--help", "This help")->group("Output");
  add_data_and_length();
  add_learning();
  add_placement();
  add_resilience();
  add_files_and_output();
}

void CommandLine::add_data_and_length() {
  const auto in = [](CLI::Option* option) {
    option->group("Data and length");
    return option;
  };
  in(app_.add_option("--data", data, "Folder with the four MNIST files, gzipped or not"));
  in(app_.add_option(
      "--epochs", training.epochs,
      "Passes over the training data [" + std::to_string(defaults_.epochs) + ", or what --steps needs]"));
  in(app_.add_option("--steps", training.steps, "End after so many steps, counted over all epochs"));
  auto* batch = in(app_.add_option("--batch-size", training.batch_size, "Samples a rank and step"))->default_str("");
  in(app_.add_option("--global-batch-size", training.global_batch_size, "Samples a step over all ranks [128]"))
      ->default_str("")
      ->excludes(batch);
  in(app_.add_option("--accumulate", training.accumulate, "Micro-batches a step, reduced once"));
  in(app_.add_option("--seed", training.seed, "Of the initial parameters and the order of samples"));
  in(app_.add_flag("--no-shuffle", no_shuffle_, "Take the samples in the order of the files"));
}

void CommandLine::add_learning() {
  const auto in = [](CLI::Option* option) {
    option->group("Learning");
    return option;
  };
  in(app_.add_option("--optimizer", training.optimizer.name,
                     listed(optimizer_rows(), [](const OptimizerRow& row) { return row.name; })));
  std::ostringstream rate;
  rate << "Before scaling [" << defaults_.learning_rate << " with " << default_optimizer
       << ", otherwise the --optimizer's]";
  in(app_.add_option("--learning-rate", training.learning_rate, rate.str()))
      ->default_str("")
      ->check(CLI::Validator(why_not_positive, ""));
  in(app_.add_option("--scale-learning-rate", training.scale_learning_rate,
                     "With the global batch, from 128: none, linear, sqrt"));
  in(app_.add_option("--schedule", training.schedule, "constant, step, cosine, polynomial"));
  in(app_.add_option("--warmup-epochs", warmup_epochs_,
                     "Epochs in which the rate grows [a tenth of all; none where it is constant]"))
      ->default_str("");
  in(app_.add_option("--momentum", training.optimizer.momentum, "Of " + readers_of("momentum")));
  in(app_.add_option("--beta1", training.optimizer.beta1, "Of " + readers_of("beta1")));
  in(app_.add_option("--beta2", training.optimizer.beta2, "Of " + readers_of("beta2")));
  in(app_.add_option("--epsilon", training.optimizer.epsilon, "Of " + readers_of("epsilon")));
  in(app_.add_option("--weight-decay", weight_decay_, "L2, or decoupled for adamw [0; adamw 0.01]"))->default_str("");
  in(app_.add_option("--clip-norm", training.clip_norm, "Clip the mean gradient to this 2-norm; 0: not"));
  in(app_.add_option("--label-smoothing", label_smoothing, "Share of the target that is spread over all classes"));
  in(app_.add_option("--initializer", initializer_, "he_normal, he_uniform, glorot_normal, glorot_uniform, zeros"));
  in(app_.add_option(
      "--dtype", dtype_,
      "float32; with --device cuda also tf32, whose products are less exact, mixed_bfloat16, mixed_float16"));
}

void CommandLine::add_placement() {
  const auto in = [](CLI::Option* option) {
    option->group("Where and how");
    return option;
  };
  in(app_.add_option("--device", device_, "auto, cpu, cuda"));
  in(app_.add_flag("--nondeterministic", training.nondeterministic,
                   "With --device cuda: the fastest engines, also where equal runs then differ in their last bits"));
  in(app_.add_option("--threads", training.threads, "Of a rank [the cores it is bound to]"))->default_str("");
  in(app_.add_option("--allreduce", allreduce_,
                     listed_names(allreduce_names(DeviceKind::cpu)) +
                         "; on GPUs: " + listed_names(allreduce_names(DeviceKind::cuda))));
  in(app_.add_option("--compression", compression_,
                     "Of gradients on the wire: none, bf16, fp16, int8; auto: bf16 between nodes, where that saves a "
                     "tenth of the time"));
  in(app_.add_option("--communication-progress,--progress", progress_,
                     "Who moves messages along: auto, inline, thread"));
  in(app_.add_option("--communication-timeout", world.communication_timeout,
                     "Seconds a rank is waited for before the job ends, by name; 0: for ever"))
      ->check(CLI::Range(0.0, 1e6));
  in(app_.add_option("--bucket-bytes", training.bucket_bytes, "Gradients reduced together, e.g. 4M"))
      ->default_str("")
      ->transform(CLI::AsSizeValue(false));
  in(app_.add_option(
         "--memory-limit", training.memory_limit,
         "Refuse a plan that needs more a rank, e.g. 2G; the copies that checkpoints and audits keep are not counted"))
      ->default_str("")
      ->transform(CLI::AsSizeValue(false));
  in(app_.add_option("--plan", training.plan, "Take everything chosen by timing from this file, or write it there"))
      ->default_str("");
}

void CommandLine::add_resilience() {
  const auto in = [](CLI::Option* option) {
    option->group("Not losing work");
    return option;
  };
  in(app_.add_option("--checkpoint-dir", training.checkpoint_dir,
                     "Save the training in this folder, at the end and where "
                     "it has to end early; all hosts share it"))
      ->default_str("");
  in(app_.add_option("--checkpoint-every", checkpoint_every_, "And every so many steps, or every 30s, 10m, 1h"))
      ->default_str("");
  in(app_.add_option("--keep", training.keep, "The newest checkpoints that stay"));
  auto* resume = in(app_.add_flag("--resume", training.resume,
                                  "Go on from the newest whole checkpoint; start anew where there is none"));
  in(app_.add_option("--resume-from", training.resume_from, "Go on from this one, DIR/step-N"))
      ->default_str("")
      ->excludes(resume);
  in(app_.add_flag("--exact", training.exact, "End rather than go on with other bits, as on other hosts"));
  in(app_.add_option("--allow-changes", training.allow_changes,
                     "Options that may differ from the checkpoint's, e.g. seed,learning-rate"))
      ->default_str("")
      ->delimiter(',');
  in(app_.add_option("--time-limit", time_limit_, "H:M:S after which to save and end with status 75"))->default_str("");
  in(app_.add_option("--audit-every", training.audit_every,
                     "Compare the replicas every so many steps, and before each checkpoint [not]"))
      ->default_str("");
  in(app_.add_option("--on-divergence", on_divergence_, "Replicas that differ: stop, rollback"));
  in(app_.add_option("--on-nonfinite", on_nonfinite_,
                     "A loss or gradient that is not finite: stop, skip, rollback; looks at all gradients in each step "
                     "[stop, by the loss alone]"))
      ->default_str("");
  app_.add_option("--inject", faults_, "For tests: KIND@STEP[:RANK]")->group("")->delimiter(',');
}

void CommandLine::add_files_and_output() {
  const auto in = [](CLI::Option* option, const char* group) { option->group(group)->default_str(""); };
  in(app_.add_option("--init", training.init, "Start from these parameters (safetensors)"), "Files");
  in(app_.add_option("--save", training.save, "Write the trained parameters (safetensors)"), "Files");
  in(app_.add_option("--predictions", training.predictions, "Write the outputs for the test data (safetensors)"),
     "Files");
  in(app_.add_option("--summary-json", training.summary_json, "Write the results"), "Files");
  in(app_.add_option("--metrics", training.metrics, "Write a JSON line a step"), "Files");
  in(app_.add_option("--trace", world.trace, "Keep each rank's last collectives in this folder, for ronda_trace"),
     "Files");
  in(app_.set_config("--config", "", "Read options from a TOML or INI file"), "Files");
  auto* quiet_flag = app_.add_flag("--quiet", quiet, "Say nothing but warnings and errors");
  quiet_flag->group("Output");
  app_.add_flag("--verbose", verbose, "Show the plan, and where the time goes")->group("Output")->excludes(quiet_flag);
}

bool CommandLine::parse(int argc, char** argv) {
  if (!apps::parse(app_, argc, argv)) return false;
  if (app_.count("--epochs") == 0 && app_.count("--steps") == 0) training.epochs = defaults_.epochs;
  refuse_what_optimizer_lacks();
  if (app_.count("--weight-decay") > 0) training.optimizer.weight_decay = weight_decay_;
  if (app_.count("--warmup-epochs") > 0) training.warmup_epochs = warmup_epochs_;
  if (app_.count("--learning-rate") == 0 && training.optimizer.name == default_optimizer)
    training.learning_rate = defaults_.learning_rate;
  for (const char* size : {"--batch-size", "--global-batch-size"})
    if (app_.count(size) > 0 && app_.get_option(size)->as<std::size_t>() == 0)
      throw InputError(std::string(size) + " is at least 1");
  training.shuffle = !no_shuffle_;
  if (app_.count("--checkpoint-every") > 0) training.checkpoint_every = parse_checkpoint_interval(checkpoint_every_);
  if (app_.count("--time-limit") > 0) training.time_limit = parse_time_limit(time_limit_);
  training.on_divergence = parse_on_divergence(on_divergence_);
  if (!on_nonfinite_.empty()) training.on_nonfinite = parse_on_nonfinite(on_nonfinite_);
  for (const auto& fault : faults_) training.faults.push_back(parse_fault(fault));
  apply_names();
  if (!training.checkpoint_dir.empty()) stop_signals.emplace();
  return true;
}

/// A momentum that would not be used is no training that anybody meant.
void CommandLine::refuse_what_optimizer_lacks() const {
  const std::string& name = training.optimizer.name;
  static_cast<void>(default_learning_rate(name));  // throws where there is no such optimizer
  for (const std::string field : {"momentum", "beta1", "beta2", "epsilon"})
    if (app_.count("--" + field) > 0 && !optimizer_reads(name, field))
      throw InputError("--" + field + " has no meaning for --optimizer " + name + ": it is for " + readers_of(field));
}

void CommandLine::apply_names() {
  training.initializer = parse_initializer(initializer_);
  training.allreduce = parse_allreduce(allreduce_);
  training.compression = parse_compression(compression_);
  world.progress = parse_progress(progress_);
  training.device = parse_device(device_);
  training.precision = parse_precision(dtype_);
  if (data.empty()) throw InputError("the MNIST files are not beside this program; give their folder by --data DIR");
  std::ostringstream smoothing;
  smoothing << "label smoothing " << label_smoothing;
  training.variant = smoothing.str() + training.variant;
}

}  // namespace ronda::apps
