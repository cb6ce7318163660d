// What can this machine and this build do, what is off, and what is the remedy?
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>

#include <ronda/collectives/launcher.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/io/whole_file.hpp>
#include <ronda/runtime/trainer/version.hpp>

#include "doctor/finding.hpp"
#include "doctor/trial.hpp"
#include "tool.hpp"

namespace {

using namespace ronda;
using apps::Finding;
using apps::Findings;
using Json = nlohmann::json;

struct Options {
  std::filesystem::path json;
};

bool parse(int argc, char** argv, Options& options) {
  CLI::App app(
      "Tells what this machine and this build can do, what is off and the remedy, a line each.\n"
      "Under mpirun the first rank tells, and all train together for a moment.\n"
      "Exit status: 0 where it can train, 1 where it cannot, 2 wrong usage.",
      "ronda_doctor");
  app.set_version_flag("--version", std::string("ronda_doctor (Ronda) ") + version());
  app.add_option("--json", options.json, "write the same for programs");
  return apps::parse(app, argc, argv);
}

Findings examine() {
  Findings all;
  for (const auto& look :
       {apps::look_at_build, apps::look_at_gpus, apps::look_at_machine, apps::look_at_launcher, apps::look_at_places})
    for (Finding& finding : look()) all.push_back(std::move(finding));
  return all;
}

void print(const Finding& finding) {
  std::string line = finding.state == Finding::State::fine ? "" : apps::name_of(finding.state);
  line.resize(9, ' ');
  line += finding.subject;
  line.resize(std::max<std::size_t>(line.size() + 1, 24), ' ');
  line += finding.text;
  if (!finding.remedy.empty()) line += "; " + finding.remedy;
  std::cout << line << std::endl;
}

Json to_json(const Findings& findings, bool can_train, bool on_gpu) {
  Json json{{"version", version()},
            {"can_train", can_train},
            {"can_train_on_gpu", on_gpu},
            {"gpus", Json::array()},
            {"findings", Json::array()}};
  for (const Gpu& gpu : find_gpus().gpus)
    json["gpus"].push_back({{"name", gpu.name},
                            {"compute_capability", std::to_string(gpu.major) + "." + std::to_string(gpu.minor)},
                            {"memory_bytes", gpu.memory_bytes}});
  for (const Finding& finding : findings) {
    Json one{{"subject", finding.subject}, {"state", apps::name_of(finding.state)}, {"text", finding.text}};
    if (!finding.remedy.empty()) one["remedy"] = finding.remedy;
    json["findings"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string_view(apps::trial_option)) return apps::train_a_little(1, argv);
  return apps::run_alone([&] {
    Options options;
    if (!parse(argc, argv, options)) return 0;
    const bool speaks = Launcher::from_environment().rank == 0;
    if (speaks) apps::require_output({"--json", options.json});
    Findings findings;
    if (speaks) findings = examine();
    for (const Finding& finding : findings) print(finding);
    const Findings trials = apps::try_training();
    const auto works = [&](std::string_view what) {
      return std::ranges::any_of(
          trials, [&](const Finding& trial) { return trial.subject == what && trial.state == Finding::State::fine; });
    };
    const bool can_train = works("training"), on_gpu = works(apps::gpu_subject);
    for (const Finding& trial : trials) {
      if (speaks) print(trial);
      findings.push_back(trial);
    }
    if (speaks && !options.json.empty())
      write_text(options.json,
                 to_json(findings, can_train, on_gpu).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    return static_cast<int>(can_train ? ExitStatus::done : ExitStatus::failed);
  });
}
