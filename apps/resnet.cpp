#include "resnet.hpp"

#include <CLI/CLI.hpp>

namespace ronda::apps {

void add_sync_batch_norm(CommandLine& command_line, bool& synchronized) {
  command_line.app()
      .add_flag("--sync-batch-norm,!--no-sync-batch-norm", synchronized,
                std::string("Normalise batches over all ranks: any number of ranks trains the same [") +
                    (synchronized ? "yes]" : "no]"))
      ->group("Model");
}

}  // namespace ronda::apps
