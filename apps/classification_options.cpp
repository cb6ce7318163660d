#include "classification_options.hpp"

#include <CLI/CLI.hpp>

namespace ronda::apps {

LabelSmoothing::LabelSmoothing(CommandLine& command_line, double share) : share_(share) {
  command_line.app()
      .add_option("--label-smoothing", share_, "Share of the target that is spread over all classes")
      ->group("Learning");
}

Mixup::Mixup(CommandLine& command_line) {
  command_line.app()
      .add_option("--mixup", alpha_, "Mix each sample with another, by a share from Beta(ALPHA, ALPHA); 0: do not")
      ->check(CLI::Range(0.0, 1e3))
      ->group("Data and length");
}

}  // namespace ronda::apps
