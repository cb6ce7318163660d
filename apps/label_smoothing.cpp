#include "label_smoothing.hpp"

#include <CLI/CLI.hpp>

namespace ronda::apps {

LabelSmoothing::LabelSmoothing(CommandLine& command_line, double share) : share_(share) {
  command_line.app()
      .add_option("--label-smoothing", share_, "Share of the target that is spread over all classes")
      ->group("Learning");
}

}  // namespace ronda::apps
