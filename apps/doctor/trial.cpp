#include "trial.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <thread>

#include <ronda/core/clock.hpp>
#include <ronda/core/text.hpp>
#include <ronda/ronda.hpp>
#include <ronda/runtime/supervise/child_process.hpp>

namespace ronda::apps {
namespace {

namespace fs = std::filesystem;
using State = Finding::State;

constexpr double patience = 60;

/// Images of one shade, half of them bright.
MemoryDataset shades() {
  std::vector<float> inputs;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 256; ++i) {
    inputs.insert(inputs.end(), 16, static_cast<float>(i) / 128 - 1);
    labels.push_back(i < 128 ? 0 : 1);
  }
  return {std::move(inputs), {4, 4, 1}, std::move(labels)};
}

// What the trial says when it has trained: the parent looks for it.
constexpr std::string_view trained_on_processor = "ronda: trained on the processor";
constexpr std::string_view trained_on_gpu = "ronda: trained on a GPU, seconds: ";

/// With a layer of each library.
void train(World& world, DeviceChoice device) {
  Sequential model(Conv2d(4, 3), ReLU(), Flatten(), Dense(2));
  SoftmaxCrossEntropy loss;
  Trainer trainer(world, model, loss, {.epochs = 1, .global_batch_size = 64, .learning_rate = 0.1, .device = device});
  const auto data = shades();
  static_cast<void>(trainer.fit(data, data));
}

bool all_have_gpus(const World& world) {
  const std::vector<std::string> reasons = world.communicator().gather_texts(find_gpus().reason);
  return std::ranges::all_of(reasons, [](const auto& reason) { return reason.empty(); });
}

std::string seconds_text(double seconds) {
  TextWriter text;
  text.precision(2);
  text << std::fixed << seconds << " s";
  return text.str();
}

/// What the trial said, and removes it.
class PrintedText {
 public:
  PrintedText() {
    std::string name = (fs::temp_directory_path() / "ronda-doctor-XXXXXX").string();
    const int file = ::mkstemp(name.data());
    if (file < 0) throw ResourceError("cannot write to " + fs::temp_directory_path().string());
    ::close(file);
    path_ = name;
  }
  PrintedText(const PrintedText&) = delete;
  ~PrintedText() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }
  /// What follows `mark` in its line; nothing where no line begins with it.
  [[nodiscard]] std::optional<std::string> after(std::string_view mark) const {
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);)
      if (line.starts_with(mark)) return line.substr(mark.size());
    return {};
  }
  /// Our own message where there is one, the first line otherwise.
  [[nodiscard]] std::string message() const {
    std::ifstream file(path_);
    std::string first;
    for (std::string line; std::getline(file, line);) {
      constexpr std::string_view ours = "ronda: error: ";
      if (line.starts_with(ours)) return line.substr(ours.size());
      if (line.starts_with(trained_on_processor)) continue;
      if (first.empty() && line.find_first_not_of("-= ") != std::string::npos) first = line;
    }
    return first.empty() ? "it said nothing" : first;
  }

 private:
  fs::path path_;
};

}  // namespace

int train_a_little(int argc, char** argv) {
  return launch(argc, argv, [](World& world) {
    train(world, DeviceChoice::cpu);
    std::cout << trained_on_processor << std::endl;
    if (!all_have_gpus(world)) return 0;
    const double began = steady_seconds();
    train(world, DeviceChoice::cuda);
    std::cout << trained_on_gpu << seconds_text(steady_seconds() - began) << std::endl;
    return 0;
  });
}

Findings try_training() {
  const PrintedText output;
  const double began = steady_seconds();
  // The shell's `exec` leaves the output where it can be read, whoever writes to it.
  ChildProcess trial({"/bin/sh", "-c", "exec \"$0\" " + std::string(trial_option) + " >\"$1\" 2>&1",
                      fs::read_symlink("/proc/self/exe").string(), output.path().string()});
  std::optional<int> status;
  while (!(status = trial.status()) && steady_seconds() - began < patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const bool works = output.after(trained_on_processor).has_value();
  const std::string failure = !status        ? "not over after a minute"
                              : *status != 0 ? "ends with status " + std::to_string(*status) + ": " + output.message()
                                             : "";
  if (!works)
    return {{"training", failure, State::broken,
             status ? "see the lines above"
                    : "MPI may look for a network that is not there: OMPI_MCA_btl=self,vader keeps it to this host"}};
  Findings found{{"training", "works"}};
  const auto on_gpu = output.after(trained_on_gpu);
  if (on_gpu)
    found.push_back({gpu_subject, "works, in " + *on_gpu});
  else if (!failure.empty())
    found.push_back({gpu_subject, failure, State::broken, "--device cpu trains; nvidia-smi shows how the GPU is"});
  if (found.size() == 1) found[0].text += ", in " + seconds_text(steady_seconds() - began) + " from start to end";
  return found;
}

}  // namespace ronda::apps
