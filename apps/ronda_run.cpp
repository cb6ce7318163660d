// Keeps a training job going: starts it under mpirun, and again from its newest checkpoint when a rank or a host dies.
#include <CLI/CLI.hpp>

#include <ronda/collectives/launcher.hpp>
#include <ronda/core/cores.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/process.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/io/atomic_file.hpp>
#include <ronda/runtime/io/run_report.hpp>
#include <ronda/runtime/supervise/hosts.hpp>
#include <ronda/runtime/supervise/supervisor.hpp>
#include <ronda/runtime/trainer/version.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>

#include "config_file.hpp"
#include "tool.hpp"

namespace {

using namespace ronda;

struct Arguments {
  SupervisorOptions supervisor;
  std::string hosts, hostfile, launcher = "mpirun", agent, json;
  bool quiet = false;
};

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// The value that `option` has among `command`'s words; nothing where it is not given.
std::optional<std::string> value_of(const std::vector<std::string>& command, const std::string& option) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i].starts_with(option + "=")) return command[i].substr(option.size() + 1);
    if (command[i] == option && i + 1 < command.size()) return command[i + 1];
  }
  return std::nullopt;
}

bool has(const std::vector<std::string>& command, const std::string& option) {
  return std::find(command.begin(), command.end(), option) != command.end() || value_of(command, option);
}

/// This program reads the file too, and so does every start: it must not be a pipe, which can be read only once.
void require_lasting(const std::filesystem::path& file) {
  std::error_code ignored;
  const std::string path = file.string();
  const bool of_process = path.starts_with("/dev/") || path.starts_with("/proc/");
  if (of_process || (std::filesystem::exists(file, ignored) && !std::filesystem::is_regular_file(file, ignored)))
    throw InputError("the program's --config " + apps::excerpt(path) +
                     " is no regular file, and every start has to read it: write it to a file and give that");
}

/// What the program will read from the file that --config names among its words, by option. Throws InputError.
std::map<std::string, std::string> config_of(const std::vector<std::string>& command) {
  std::map<std::string, std::string> values;
  const auto file = value_of(command, "--config");
  if (!file) return values;
  require_lasting(*file);
  for (const apps::ConfigEntry& entry : apps::read_config(*file))
    if (entry.values.size() == 1) values.emplace("--" + entry.name, entry.values.front());
  return values;
}

/// What the program is given, by its words or else by its file.
struct Program {
  std::vector<std::string>& words;
  std::map<std::string, std::string> config = config_of(words);

  [[nodiscard]] std::optional<std::string> value(const std::string& option) const {
    if (auto word = value_of(words, option)) return word;
    const auto found = config.find(option);
    return found == config.end() ? std::nullopt : std::optional(found->second);
  }
};

void define(CLI::App& app, Arguments& arguments) {
  SupervisorOptions& o = arguments.supervisor;
  app.prefix_command();
  app.option_defaults()->always_capture_default();
  app.set_version_flag("--version", "ronda_run (Ronda) " + version());
  app.footer(
      "PROGRAM is given --resume. It needs --checkpoint-dir, where all hosts see it, and should be given\n"
      "--checkpoint-every. SIGUSR1, SIGTERM or SIGINT: it saves and stops (status 75); a second SIGTERM or SIGINT: at "
      "once.");
  auto* hosts = app.add_option("--hosts", arguments.hosts,
                               "NAME:SLOTS,…: where ranks may run [here, a slot a core; in Slurm: the allocation]");
  app.add_option("--hostfile", arguments.hostfile, "The same from a file: NAME slots=N a line")->excludes(hosts);
  app.add_option("-n,--ranks", o.ranks, "Ranks where all hosts are there; 0: one a slot")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--min-ranks", o.min_ranks, "With fewer it waits for hosts")->check(CLI::Range(1, 1 << 20));
  app.add_option("--max-failures", o.max_failures,
                 "Failures in a row, without a new checkpoint between, after which it still restarts")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--backoff", o.first_backoff,
                 "Seconds before a restart; doubled after each failure in a row, up to 60")
      ->check(CLI::Range(0.0, 60.0));
  app.add_option("--look-every", o.look_every, "Seconds between two looks at the hosts")->check(CLI::Range(0.1, 1e6));
  app.add_option("--wait-for-hosts", o.wait_for_hosts, "Seconds that too few hosts are borne")
      ->check(CLI::Range(0.0, 1e9));
  app.add_option("--grace", o.grace, "Seconds that the job has to save in when asked to, or to end in after an error")
      ->check(CLI::Range(1.0, 1e6));
  app.add_option("--launcher", arguments.launcher, "mpirun, with further options of its own");
  app.add_option("--agent", arguments.agent, "Reaches a host: AGENT HOST COMMAND [mpirun's, ssh, or in Slurm srun]");
  app.add_option("--json", arguments.json, "File for the report");
  app.add_flag("--quiet", arguments.quiet, "Only errors");
}

/// mpirun's own. Open MPI lists alternatives, with colons between; it takes the first that is there, mostly the first.
std::vector<std::string> default_agent() {
  if (std::getenv("SLURM_JOB_NODELIST") != nullptr) return words("srun --overlap --nodes=1 --ntasks=1 --nodelist");
  for (const char* name : {"OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"})
    if (const char* agents = std::getenv(name)) {
      const std::string first(agents, std::strcspn(agents, ":"));
      if (auto agent = words(first); !agent.empty()) return agent;
    }
  return {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "--"};
}

/// As many as mpirun takes where it is not told: one a core.
int slots_of_this_machine() { return std::max(static_cast<int>(CoreMask::of(0).physical()), 1); }

void choose_hosts(const Arguments& arguments, SupervisorOptions& options) {
  if (!arguments.hosts.empty()) options.hosts = parse_hosts(arguments.hosts);
  if (!arguments.hostfile.empty()) options.hosts = read_hostfile(arguments.hostfile);
  if (options.hosts.empty()) options.hosts = hosts_of_allocation();
  if (options.hosts.empty())
    options.hosts = {{"localhost", options.ranks > 0 ? options.ranks : slots_of_this_machine()}};
  const int slots = slots_of(options.hosts);
  if (options.ranks == 0) options.ranks = slots;
  if (options.ranks > slots)
    throw InputError("--ranks " + std::to_string(options.ranks) + " are more than the hosts' " + std::to_string(slots) +
                     " slots; give them more, as NAME:SLOTS");
  if (options.min_ranks > options.ranks)
    throw InputError("--min-ranks " + std::to_string(options.min_ranks) + " are more than the " +
                     counted(options.ranks, "rank") + " in all");
}

/// The value of `--batch-size`, read as the program reads it; ronda_run multiplies it by the number of ranks.
std::uint64_t size_of_batch(const std::string& text) {
  std::uint64_t size = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), size);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || size == 0)
    throw InputError("the program's --batch-size " + apps::excerpt(text) +
                     ": expected a whole number from 1 on, in decimal digits");
  return size;
}

bool is_batch_size(const std::string& word) { return word == "--batch-size" || word.starts_with("--batch-size="); }

/// The batch of a rank becomes the global batch of all ranks, which stays the same on fewer hosts.
void make_batch_global(const Program& program, int ranks) {
  if (program.config.contains("--batch-size"))
    throw InputError(
        "batch-size in the program's --config file is a rank's, and the number of ranks may change: give "
        "global-batch-size there");
  std::vector<std::string>& command = program.words;
  const auto batch = value_of(command, "--batch-size");
  if (!batch) return;
  if (std::ranges::count_if(command, is_batch_size) > 1)
    throw InputError("the program's --batch-size is given more than once: give it once");
  if (program.value("--global-batch-size"))
    throw InputError("the program is given both --batch-size and --global-batch-size: give one of them");
  const std::uint64_t each = size_of_batch(*batch);
  const auto many = static_cast<std::uint64_t>(ranks);
  if (each > std::numeric_limits<std::int64_t>::max() / many)
    throw InputError("the program's --batch-size " + *batch + " is too large for " + counted(ranks, "rank"));
  const auto place = std::ranges::find_if(command, is_batch_size);
  if (*place == "--batch-size") command.erase(place + 1);
  *place = "--global-batch-size=" + std::to_string(each * many);
}

/// A restart must resume from the checkpoints.
void require_resuming(const std::vector<std::string>& command) {
  for (const auto& word : command)
    if (word.starts_with("--resume=") && word != "--resume=true")
      throw InputError("the program is given " + apps::excerpt(word) + ": a restart would begin anew; leave it out");
}

/// What the program is told on every start: to resume, and to keep the global batch whatever the number of ranks.
void complete(const Program& program, int ranks) {
  std::vector<std::string>& command = program.words;
  if (command.empty()) throw InputError("expected a program to run (--help says more)");
  const std::string name = std::filesystem::path(command.front()).filename();
  if (name == "mpirun" || name == "mpiexec" || name == "srun")
    throw InputError("the program is " + name + ", and ronda_run starts the ranks itself: leave that out, and give " +
                     "its options as --launcher \"" + name + " …\" and the number of ranks as -n");
  if (!program.value("--checkpoint-dir"))
    throw InputError("the program is given no --checkpoint-dir: a restart would begin anew");
  if (program.value("--resume-from"))
    throw InputError(
        "--resume-from would be gone back to on every restart: copy that checkpoint into a folder of its own, and give "
        "the folder as --checkpoint-dir");
  require_resuming(command);
  if (!has(command, "--resume") && !has(command, "--resume-or-restart")) command.emplace_back("--resume");
  make_batch_global(program, ranks);
}

/// Options of mpirun that ronda_run gives itself, or that would have the job look for relative paths elsewhere.
void require_plain_launcher(const std::vector<std::string>& launcher) {
  struct Refused {
    std::string_view option, remedy;
  };
  constexpr std::string_view ranks = "give the number of ranks as ronda_run -n",
                             hosts = "give hosts as ronda_run --hosts or --hostfile",
                             folder =
                                 "ronda_run would look for relative paths in another folder than the job; cd there "
                                 "before ronda_run";
  constexpr std::array<Refused, 15> refused{{{"n", ranks},
                                             {"np", ranks},
                                             {"c", ranks},
                                             {"N", ranks},
                                             {"npernode", ranks},
                                             {"H", hosts},
                                             {"host", hosts},
                                             {"hosts", hosts},
                                             {"f", hosts},
                                             {"hostfile", hosts},
                                             {"machinefile", hosts},
                                             {"wd", folder},
                                             {"wdir", folder},
                                             {"set-cwd-to-session-dir", folder},
                                             {"chdir", folder}}};
  const auto is_mpirun = [](const std::string& word) {
    const std::string name = std::filesystem::path(word).filename();
    return name.starts_with("mpirun") || name.starts_with("mpiexec") || name == "orterun" || name == "prterun";
  };
  auto word = std::ranges::find_if(launcher, is_mpirun);  // taskset -c 0 mpirun …: others have options of that name
  for (; word != launcher.end(); ++word) {
    const std::size_t begin = std::min(word->find_first_not_of('-'), word->size());
    const std::string name = word->substr(begin, word->find('=') - begin);
    for (const auto& [option, remedy] : refused)
      if (begin > 0 && name == option)
        throw InputError("--launcher has " + apps::excerpt(*word) + ": " + std::string(remedy));
  }
}

/// Why this machine cannot run `program`; empty where it can, as far as can be seen from outside.
std::string why_not_runnable(const std::filesystem::path& program) {
  std::error_code ignored;
  if (!std::filesystem::exists(program, ignored)) return "does not exist";
  if (!std::filesystem::is_regular_file(program, ignored)) return "is no file";
  return access(program.c_str(), X_OK) == 0 ? "" : "is not executable (chmod +x " + program.string() + ")";
}

/// Throws InputError where a rank on this machine could not begin, which the launcher would be told again and again.
void require_runnable(const std::string& program, const std::vector<Host>& hosts) {
  if (std::ranges::none_of(hosts, [](const Host& host) { return is_this_machine(host.name); })) return;
  if (program.find('/') != std::string::npos) {
    const std::string why = why_not_runnable(program);
    if (!why.empty()) throw InputError("cannot start " + program + ": it " + why);
    return;
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (why_not_runnable(std::filesystem::path(folder) / program).empty()) return;
  const bool here = why_not_runnable(program).empty();
  throw InputError("cannot start " + program + ": no folder of PATH has it" +
                   (here ? "; did you mean ./" + program + "?" : ""));
}

/// Progress of the training at its newest checkpoint.
struct Saved {
  std::uint64_t steps = 0;
  double train_seconds = 0;
};

/// Progress at the newest checkpoint with a readable manifest; `nullopt` without one.
std::optional<Saved> saved_in(const std::filesystem::path& folder) {
  try {
    auto places = list_checkpoints(folder);
    for (; !places.empty(); places.pop_back()) try {
        const CheckpointManifest manifest = read_manifest(manifest_of(places.back().path));
        return Saved{manifest.step, manifest.train_seconds};
      } catch (const InputError&) {  // the job reports it
      }
  } catch (const InputError&) {  // likewise
  }
  return std::nullopt;
}

/// Open MPI misses a host that is gone after eight minutes, unless told otherwise (4.1's names, and 5's).
void notice_lost_hosts() {
  for (const std::string prefix : {"OMPI_MCA_oob_tcp_keepalive_", "PRTE_MCA_oob_tcp_keepalive_"})
    for (const auto& [name, value] : {std::pair{"time", "5"}, {"intvl", "2"}, {"probes", "3"}})
      setenv((prefix + name).c_str(), value, 0);
}

void print(const RunReport& report) {
  std::fprintf(stderr, "ronda_run: %s, %s, %.1f s", counted(report.starts, "start").c_str(),
               counted(report.failures, "failure").c_str(), report.wall_seconds);
  if (const auto goodput = report.goodput())
    std::fprintf(stderr, "; goodput %.1f %% (%.1f s of steps that count)", 100 * *goodput, *report.useful_seconds);
  std::fprintf(stderr, "\n");
}

/// Files that are there among the program's words, which it may read.
std::vector<std::filesystem::path> files_among(const std::vector<std::string>& words) {
  std::vector<std::filesystem::path> files;
  for (const std::string& word : words)
    for (const std::string& path : {word, word.substr(word.find('=') + 1)})
      if (std::error_code ignored; std::filesystem::is_regular_file(path, ignored)) files.emplace_back(path);
  return files;
}

/// Throws InputError where `--json` would replace a file of the program. Since the program may read files that its
/// options do not name, only an earlier report is replaced.
void require_own_report(const Arguments& arguments, const Program& program) {
  std::vector<Output> outputs{{"--json", arguments.json}};
  for (const std::string option : {"--save", "--summary-json", "--metrics", "--predictions", "--plan"})
    outputs.push_back({"the program's " + option, program.value(option).value_or("")});
  std::vector<std::filesystem::path> inputs{arguments.hostfile, program.words.front(),
                                            program.value("--config").value_or("")};
  if (std::error_code ignored; std::filesystem::is_regular_file(arguments.json, ignored)) {
    if (!is_run_report(arguments.json))
      throw InputError("--json " + apps::excerpt(arguments.json) +
                       " is there, and is no report of ronda_run: it would be lost; give another path, or remove it");
    require_apart({outputs.front()}, files_among(program.words));
  }
  require_apart(outputs, inputs);
  if (!arguments.json.empty()) check_creatable(arguments.json);
}

/// At the end, a report that cannot be written is no error of the command line: status 1.
void write_report(const std::string& path, const RunReport& report) {
  try {
    write_run_report(path, report);
  } catch (const InputError& error) {
    throw ResourceError(error.message());
  }
}

/// The checkpoints before and after say which seconds of the steps were spent here.
RunReport report_of(const SupervisorReport& outcome, const std::optional<Saved>& before,
                    const std::optional<Saved>& after) {
  RunReport report{.status = outcome.status,
                   .starts = outcome.starts,
                   .failures = outcome.failures,
                   .wall_seconds = outcome.wall_seconds,
                   .steps = {},
                   .useful_seconds = {},
                   .happenings = {}};
  for (const auto& [seconds, text] : outcome.happenings) report.happenings.emplace_back(seconds, text);
  if (!after) return report;
  report.steps = after->steps;
  if (const double seconds = after->train_seconds - (before ? before->train_seconds : 0); seconds >= 0)
    report.useful_seconds = seconds;
  return report;
}

/// Throws InputError under mpirun or srun, where each copy would start a job of its own.
void refuse_launcher(const Launcher& launcher) {
  if (!launcher.known || launcher.size == 1) return;
  if (launcher.rank > 0) {  // rank 0 prints the error, before the launcher ends all
    std::this_thread::sleep_for(std::chrono::seconds(2));
    std::_Exit(static_cast<int>(ExitStatus::bad_input));
  }
  throw InputError("ronda_run was started " + std::to_string(launcher.size) +
                   " times by a launcher, and each copy would start a job of its own: start it once, without mpirun or "
                   "srun, and give it the number of ranks, ronda_run -n " +
                   std::to_string(launcher.size) + " PROGRAM");
}

int run(Arguments& arguments, SignalInbox& inbox) {
  SupervisorOptions& options = arguments.supervisor;
  std::signal(SIGPIPE, SIG_IGN);  // the reader of its output may end before the job
  refuse_launcher(Launcher::from_environment());
  options.launcher = words(arguments.launcher);
  if (options.launcher.empty()) throw InputError("--launcher is empty; expected mpirun or the like");
  require_plain_launcher(options.launcher);
  options.agent = arguments.agent.empty() ? default_agent() : words(arguments.agent);
  choose_hosts(arguments, options);
  const Program program{options.command};
  complete(program, options.ranks);
  require_runnable(options.command.front(), options.hosts);
  options.checkpoints = program.value("--checkpoint-dir").value_or("");
  options.trace = program.value("--trace").value_or("");
  require_own_report(arguments, program);
  notice_lost_hosts();

  const std::optional<Saved> before = saved_in(options.checkpoints);
  Supervisor supervisor(options, inbox, [&](const std::string& text) {
    if (!arguments.quiet) std::cerr << "ronda_run: " + text + "\n" << std::flush;
  });
  const SupervisorReport outcome = supervisor.run();
  const RunReport report = report_of(outcome, before, saved_in(options.checkpoints));
  if (!arguments.quiet)
    print(report);
  else if (!outcome.gave_up.empty())
    std::cerr << "ronda: error: ronda_run " + outcome.gave_up + "\n" << std::flush;
  if (!arguments.json.empty()) write_report(arguments.json, report);
  return outcome.status;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Runs a training program under mpirun until it is done: again from its newest checkpoint when a rank or a host "
      "dies,\n"
      "on the hosts that still answer, and on all of them when lost ones are back.\n"
      "ronda_run [OPTION]… PROGRAM ARGUMENT…",
      "ronda_run");
  return apps::run_alone([&] {
    SignalInbox inbox;
    Arguments arguments;
    define(app, arguments);
    if (!apps::parse(app, argc, argv)) return 0;
    arguments.supervisor.command = app.remaining();
    const auto& command = arguments.supervisor.command;
    if (!command.empty() && command[0].starts_with('-')) apps::refuse_unknown(app, command[0]);
    return run(arguments, inbox);
  });
}
