#include "models.hpp"

#include <CLI/CLI.hpp>

#include <ronda/core/error.hpp>

#include "command_line.hpp"

namespace ronda::apps {

void add_gpt_options(CommandLine& command_line, GptOptions& options) {
  const auto add = [&](const char* name, std::int64_t& field, std::int64_t most, const char* help) {
    command_line.app().add_option(name, field, help)->check(CLI::Range(std::int64_t{1}, most))->group("Model");
  };
  add("--context", options.context, 1 << 20, "Bytes that are read at once");
  add("--layers", options.layers, 1 << 10, "Transformer blocks");
  add("--heads", options.heads, 1 << 10, "Heads of each attention");
  add("--width", options.width, 1 << 16, "Elements that stand for a byte, a multiple of --heads");
  command_line.app()
      .add_option("--dropout", options.dropout, "Share of elements that are dropped in training")
      ->check(CLI::Range(0.0, 0.99))
      ->group("Model");
  command_line.check_by([&options] {
    if (options.width % options.heads != 0)
      throw InputError("--width " + std::to_string(options.width) + " is no multiple of --heads " +
                       std::to_string(options.heads));
  });
}

void add_sync_batch_norm(CommandLine& command_line, bool& synchronized) {
  command_line.app()
      .add_flag("--sync-batch-norm,!--no-sync-batch-norm", synchronized,
                std::string("Normalise batches over all ranks: any number of ranks trains the same [") +
                    (synchronized ? "yes]" : "no]"))
      ->group("Model");
}

}  // namespace ronda::apps
