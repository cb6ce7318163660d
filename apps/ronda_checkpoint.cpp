// What is in a folder of checkpoints: list, verify, show, export. Needs no MPI.
#include <algorithm>
#include <iostream>
#include <iterator>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/checkpoint/best_model.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/model_in.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/io/whole_file.hpp>
#include <ronda/runtime/trainer/version.hpp>

#include "tool.hpp"

namespace {

using namespace ronda;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;  // in the order in which people read it

/// A checkpoint as it is named; for a folder of them, all.
std::vector<fs::path> checkpoints_at(const fs::path& place) {
  if (is_there(manifest_of(place))) return {place};
  std::vector<fs::path> found;
  for (const auto& checkpoint : list_checkpoints(place)) found.push_back(checkpoint.path);
  std::error_code ignored;
  if (found.empty())
    throw InputError(place.string() +
                     (fs::is_directory(place, ignored) ? " has no checkpoints" : " is no folder of checkpoints"));
  return found;
}

/// A checkpoint as it is named; for a folder of them, the newest whole one.
fs::path one_at(const fs::path& place) {
  if (is_there(manifest_of(place)) || list_checkpoints(place).empty()) return checkpoints_at(place).front();
  const auto newest = newest_whole(place, [](const CheckpointPlace&, const Error& error) {
    std::cerr << std::string("ronda: warning: passing over: ") + error.what() + "\n";
  });
  if (!newest) throw InputError("no checkpoint in " + place.string() + " is whole");
  return newest->path;
}

std::uint64_t bytes_of(const CheckpointManifest& manifest) {
  std::uint64_t bytes = 0;
  for (const auto& part : manifest.parts) bytes += part.sum.bytes;
  return bytes;
}

/// One line of `list` and `verify`: what the checkpoint is, or what is wrong with it.
struct Line {
  fs::path path;
  std::optional<CheckpointManifest> manifest = {};
  std::string error = {};  ///< empty: nothing is wrong
  bool is_model = false;   ///< a best model beside the checkpoints: it has no manifest

  [[nodiscard]] std::string text(bool verified) const {
    if (!error.empty()) return path.string() + "  DAMAGED: " + error;
    if (is_model) return path.string() + "  the model of the best epoch, whole";
    return path.string() + "  step " + std::to_string(manifest->step) + ", epoch " + std::to_string(manifest->epoch) +
           ", " + manifest->application + ", " + counted(manifest->ranks, "rank") + ", " +
           std::to_string(bytes_of(*manifest)) + " bytes" + (verified ? ", whole" : "");
  }
  [[nodiscard]] std::string json(bool verified) const {
    Json object = {{is_model ? "file" : "folder", path.string()}};
    if (verified) object["whole"] = error.empty();
    if (manifest)
      object.update({{"step", manifest->step},
                     {"epoch", manifest->epoch},
                     {"ranks", manifest->ranks},
                     {"bytes", bytes_of(*manifest)}});
    if (!error.empty()) object["error"] = error;
    return object.dump(-1, ' ', false, Json::error_handler_t::replace);  // names of files may be no text
  }
};

template <class Read>
std::vector<Line> look_at(const fs::path& place, Read read) {
  std::vector<Line> lines;
  for (const auto& path : checkpoints_at(place)) {
    Line line{.path = path};
    try {
      line.manifest = read(path);
    } catch (const Error& error) {
      line.error = error.what();
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

void print(const std::vector<Line>& lines, bool json, bool verified) {
  if (json) std::cout << "[";
  for (std::size_t i = 0; i < lines.size(); ++i)
    std::cout << (json ? (i == 0 ? "\n  " : ",\n  ") + lines[i].json(verified) : lines[i].text(verified) + "\n");
  if (json) std::cout << "\n]\n";
}

int list(const fs::path& place, bool json) {
  print(look_at(place, [](const fs::path& path) { return read_manifest(manifest_of(path)); }), json, false);
  return 0;
}

/// The best models that lie beside the checkpoints of a folder.
std::vector<Line> look_at_best_models(const fs::path& place) {
  std::vector<Line> lines;
  if (is_there(manifest_of(place))) return lines;  // one checkpoint
  for (const fs::path& path : list_best_models(place)) {
    Line line{.path = path, .is_model = true};
    try {
      static_cast<void>(read_best_model(path));
    } catch (const Error& error) {
      line.error = error.what();
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

int verify(const fs::path& place, bool json) {
  auto lines = look_at(place, [](const fs::path& path) { return verify_checkpoint(path); });
  std::ranges::move(look_at_best_models(place), std::back_inserter(lines));
  print(lines, json, true);
  for (const auto& line : lines)
    if (!line.error.empty()) throw InputError(line.error);
  return 0;
}

/// With a comma before it; empty where the epoch was not tested.
std::string tested(const EpochReport& epoch, const Metric& metric) {
  const auto text = [&](const char* data, double loss, double value) {
    TextWriter line;
    line << ", " << data << " loss " << loss;
    if (!metric.name.empty()) line << ", " << data << " " << metric.name << " " << metric.text(value);
    return line.str();
  };
  if (epoch.validated) return text("validation", epoch.validation_loss, epoch.validation_metric);
  return epoch.evaluated ? text("test", epoch.test_loss, epoch.test_metric) : "";
}

int show(const fs::path& place, bool json) {
  const fs::path checkpoint = one_at(place);
  const CheckpointManifest manifest = read_manifest(manifest_of(checkpoint));
  if (json) {
    std::cout << manifest_summary(manifest, checkpoint) << "\n";
    return 0;
  }
  std::cout << checkpoint.string() << "\n  " << manifest.application << " by Ronda " << manifest.ronda << ", "
            << counted(manifest.ranks, "rank") << " on " << counted(manifest.hosts, "host") << "\n  after step "
            << manifest.step << ", in epoch " << manifest.epoch << " after "
            << counted(static_cast<std::int64_t>(manifest.step_in_epoch), "step") << " of it; "
            << counted(static_cast<std::int64_t>(manifest.samples), "sample") << " in " << manifest.train_seconds
            << " s\n";
  for (const auto& [name, value] : manifest.options) std::cout << "  " << name << ": " << value << "\n";
  for (const auto& epoch : manifest.history)
    std::cout << "  epoch " << epoch.epoch << ": train loss " << epoch.train_loss << tested(epoch, manifest.metric)
              << "\n";
  for (const auto& part : manifest.parts) {
    std::cout << "  " << part.file << " (" << part.sum.bytes << " bytes):";
    for (const auto& name : part.tensors) std::cout << " " << name;
    for (const auto& name : part.per_rank) std::cout << " " << name << " (this rank's own)";
    std::cout << "\n";
  }
  return 0;
}

int export_parameters(const fs::path& file, const fs::path& place, bool all) {
  const fs::path checkpoint = one_at(place);
  const CheckpointManifest manifest = verify_checkpoint(checkpoint);
  apps::require_output({"FILE", file}, {checkpoint});
  std::map<std::string, std::string> metadata{{"format", "pt"}, {"step", std::to_string(manifest.step)}};
  metadata.insert(manifest.metadata.begin(), manifest.metadata.end());
  write_safetensors(file, model_in(checkpoint, manifest, all), metadata);
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app("Looks at checkpoints: what there is, whether it is whole, what is in it.", "ronda_checkpoint");
  app.set_version_flag("--version", "ronda_checkpoint (Ronda) " + version());
  app.require_subcommand(1);
  fs::path place, file;
  bool json = false, all = false;
  const auto command = [&](const char* name, const char* what, const char* where) {
    CLI::App* sub = app.add_subcommand(name, what);
    if (std::string_view(name) == "export") sub->add_option("FILE", file, "Where to write, safetensors")->required();
    sub->add_option("DIR", place, where)->required();
    return sub;
  };
  auto* list_command = command("list", "The checkpoints of a folder", "The --checkpoint-dir of a training");
  auto* verify_command = command("verify", "Reads every byte; status 2 where any is not as it was written",
                                 "A checkpoint, DIR/step-N, or a folder of them");
  auto* show_command =
      command("show", "All about one checkpoint", "A checkpoint, DIR/step-N, or a folder: its newest whole one");
  auto* export_command = command("export", "Writes a checkpoint's parameters as --save does, for --init and PyTorch",
                                 "A checkpoint, DIR/step-N, or a folder: its newest whole one");
  for (auto* sub : {list_command, verify_command, show_command}) sub->add_flag("--json", json, "For programs");
  export_command->add_flag(
      "--all", all, "The optimizer's states too, and parameters as well as their average (--ema-decay), NAME.ema");
  if (!apps::parse(app, argc, argv)) return 0;
  if (*list_command) return list(place, json);
  if (*verify_command) return verify(place, json);
  if (*show_command) return show(place, json);
  return export_parameters(file, place, all);
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_alone([&] { return run(argc, argv); });
}
