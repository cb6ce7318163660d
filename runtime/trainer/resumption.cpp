#include <ronda/collectives/phase.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/faults.hpp>
#include <ronda/runtime/io/whole_file.hpp>
#include <ronda/runtime/trainer/plan_difference.hpp>
#include <ronda/runtime/trainer/resumption.hpp>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

namespace ronda {
namespace {

namespace fs = std::filesystem;

bool same_folder(const fs::path& a, const fs::path& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

void refuse_mixing(const TrainingOptions& options) {
  if (options.checkpoint_dir.empty()) return;
  const auto there = list_checkpoints(options.checkpoint_dir);
  if (there.empty()) return;
  throw InputError(setting("checkpoint_dir", options.checkpoint_dir.string()) +
                   " has checkpoints already, up to step " + std::to_string(there.back().step) +
                   ": go on from them with " + setting("resume") + ", or give this training a folder of its own");
}

/// On rank 0: the checkpoint's folder; empty where there is none.
fs::path look_for(const TrainingOptions& options, EventSink& sink) {
  if (!options.resume_from.empty()) {
    fs::path folder = fs::absolute(options.resume_from).lexically_normal();
    if (folder.filename().empty()) folder = folder.parent_path();  // given with a slash behind it
    if (!is_there(manifest_of(folder)))
      throw InputError(setting("resume_from", folder.string()) +
                       " is no checkpoint: give the folder of one, DIR/step-N");
    verify_checkpoint(folder);
    if (!same_folder(folder.parent_path(), options.checkpoint_dir)) refuse_mixing(options);
    return folder;
  }
  if (!options.resume && !options.resume_or_restart) {
    refuse_mixing(options);
    return {};
  }
  bool damaged = false;
  const auto place = newest_whole(options.checkpoint_dir, [&](const CheckpointPlace& bad, const Error& error) {
    damaged = true;
    sink.on_message(Severity::warning,
                    "passing over the checkpoint of step " + std::to_string(bad.step) + ": " + error.message());
  });
  if (place) return place->path;
  const std::string where = "no checkpoint in " + options.checkpoint_dir.string();
  if (damaged && !options.resume_or_restart)
    throw InputError(where + " is whole, as the warnings say: bring one of them back, or start anew with " +
                     setting("resume_or_restart"));
  if (!damaged) {
    sink.on_note(where + " yet; starting anew");
    return {};
  }
  for (const auto& path : set_all_aside(options.checkpoint_dir))
    sink.on_warning("a checkpoint that is not whole is set aside as " + path.string());
  sink.on_warning(where + " is whole; starting anew");
  return {};
}

std::set<std::string> names_of(const std::map<std::string, std::string>& a,
                               const std::map<std::string, std::string>& b) {
  std::set<std::string> names;
  for (const auto* map : {&a, &b})
    for (const auto& [name, value] : *map) names.insert(name);
  return names;
}

std::string value_in(const std::map<std::string, std::string>& map, const std::string& name) {
  const auto found = map.find(name);
  return found == map.end() ? "nothing" : "'" + found->second + "'";
}

/// A description by `text_of` in its parts.
struct DataText {
  std::string_view shapes, kind;  ///< of the fingerprint

  explicit DataText(std::string_view text) {
    const std::size_t comma = std::min(text.rfind(", "), text.size());
    shapes = text.substr(0, comma);
    kind = text.substr(comma, std::min(text.rfind(' '), text.size()) - comma);
  }
};

/// A checkpoint's description of its data, or this training's where they differ in nothing that can be compared: an
/// earlier Ronda hashed all bytes.
std::string comparable(const std::string& theirs, const std::string& mine, EventSink& sink) {
  const DataText there(theirs), here(mine);
  if (there.kind == here.kind || there.shapes != here.shapes) return theirs;
  sink.on_note(
      "the checkpoint has another kind of hash of its data, by an earlier Ronda; the contents are not compared");
  return mine;
}

}  // namespace

std::optional<Resumption> find_checkpoint(const Communicator& communicator, const TrainingOptions& options,
                                          EventSink& sink) {
  fs::path folder;
  std::string text;
  agree(communicator, [&] {
    if (communicator.rank() != 0) return;
    const Phase phase(communicator, Activity::reading,
                      reading_limit(options.resume_from.empty() ? options.checkpoint_dir : options.resume_from));
    folder = look_for(options, sink);
    if (folder.empty()) return;
    const CheckpointManifest manifest = read_manifest(manifest_of(folder));
    text = manifest_text(manifest);
    if (Faults(options.faults, 0).happens(FaultKind::slow_read, manifest.step))
      std::this_thread::sleep_for(std::chrono::seconds(6));
  });
  folder = communicator.broadcast_text(folder.string());
  text = communicator.broadcast_text(text);
  if (folder.empty()) return std::nullopt;
  return Resumption{folder, parse_manifest(text, manifest_of(folder))};
}

std::string text_of(const Dataset& data) {
  std::string text = counted(static_cast<std::int64_t>(data.size()), "sample");
  for (const auto& field : data.fields()) text += ", " + field.name + " " + field.shape.text();
  return text + ", sampled contents " + std::to_string(data.fingerprint());
}

std::map<std::string, std::string> options_that_matter(const TrainingOptions& o, std::uint64_t total_steps,
                                                       const Dataset& train) {
  std::map<std::string, std::string> values{{"data", text_of(train)}};
  for (auto& option : in_words(o))
    if (option.matters) values.emplace(std::move(option.name), std::move(option.value));
  if (schedule_row(o.schedule).follows_length || o.prune > 0)
    values["steps"] = std::to_string(total_steps);  // else it may be longer
  return values;
}

void check_changes(const Resumption& resumption, const std::map<std::string, std::string>& mine,
                   const TrainingOptions& options, EventSink& sink) {
  auto theirs = resumption.manifest.options;
  if (const auto data = theirs.find("data"); data != theirs.end())
    data->second = comparable(data->second, mine.at("data"), sink);
  const auto names = names_of(mine, theirs);
  for (const auto& allowed : options.allow_changes)
    if (!names.contains(allowed)) {
      std::string known;
      for (const auto& name : names) known += (known.empty() ? "" : ", ") + name;
      throw InputError(setting("allow_changes") + ": there is no '" + allowed + "'; choose from " + known);
    }
  std::vector<std::string> order(names.begin(), names.end());
  std::stable_partition(order.begin(), order.end(),
                        [](const auto& name) { return name == "model"; });  // whoever has another is at
                                                                            // the wrong folder
  std::string differences, changed;
  for (const auto& name : order) {
    if (!mine.contains(name) || !theirs.contains(name)) continue;  // another optimizer's or schedule's: that is said
    const std::string here = value_in(mine, name), there = value_in(theirs, name);
    if (here == there || std::ranges::find(options.allow_changes, name) != options.allow_changes.end()) continue;
    differences += (differences.empty() ? "" : "; ") + name + " is " + here + (name == "steps" ? " in all" : "") +
                   " here, the checkpoint has " + there;
    changed += (changed.empty() ? "" : ",") + name;
  }
  if (differences.empty()) return;
  throw InputError(resumption.folder.string() + " was made by another training: " + differences +
                   "; give what it has, or " + setting("allow_changes", changed) + " where that is meant");
}

std::string why_not_exact(const CheckpointManifest& manifest, const Communicator& communicator,
                          const std::map<std::string, std::string>& environment, const std::vector<std::string>& plan) {
  const auto differ = [](const std::string& what, const std::string& there, const std::string& here) {
    return what + " is " + here + " here, the checkpoint has " + there;
  };
  std::string differences;
  const auto compare = [&](const std::string& what, const std::string& there, const std::string& here) {
    if (here != there) differences += (differences.empty() ? "" : "; ") + differ(what, there, here);
  };
  compare("the number of ranks", std::to_string(manifest.ranks), std::to_string(communicator.size()));
  compare("the number of hosts", std::to_string(manifest.hosts), std::to_string(communicator.topology().nodes));
  for (const auto& name : names_of(environment, manifest.environment))
    compare(name, value_in(manifest.environment, name), value_in(environment, name));
  if (!differences.empty()) return differences;  // which the plan then follows
  if (const auto difference = difference_of_plans(plan, manifest.plan))
    return differ("the plan", "'" + difference->second + "'", "'" + difference->first + "'");
  return {};
}

}  // namespace ronda
