// What did the ranks of a job do last, who went another way, and whom did the others wait for? From the records that
// they leave.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <ronda/collectives/watch/recorder.hpp>
#include <ronda/collectives/watch/trace.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/checkpoint/outputs.hpp>
#include <ronda/runtime/io/whole_file.hpp>
#include <ronda/runtime/trainer/version.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <iostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tool.hpp"

namespace {

using namespace ronda;
using Json = nlohmann::json;

struct Options {
  std::vector<std::filesystem::path> places;
  std::filesystem::path json, timeline;
};

Json to_json(const Record& record) {
  return {{"collective", text_of(record)},
          {"contents", contents_of(record)},
          {"number", record.number},
          {"group", record.group},
          {"step", record.step}};
}

Json to_json(const Trace& trace, const Explanation& explanation) {
  Json json{{"job", trace.job},       {"size", trace.size},       {"missing", trace.missing},
            {"notes", trace.notes},   {"late", explanation.late}, {"text", explanation.text},
            {"ranks", Json::array()}, {"divergence", nullptr},    {"last_to_come", Json::array()}};
  for (const RankTrace& rank : trace.ranks) {
    Json one{{"rank", rank.rank},       {"host", rank.host},
             {"process", rank.process}, {"last_sign_of_life", rank.last_life},
             {"ended", rank.ended},     {"waits", rank.state.status.waits()},
             {"last", nullptr}};
    if (const Record* last = rank.last()) {
      one["last"] = to_json(*last);
      one["last"]["outcome"] = last->outcome() == Outcome::started  ? "started"
                               : last->outcome() == Outcome::failed ? "failed"
                                                                    : "done";
    }
    json["ranks"].push_back(std::move(one));
  }
  if (explanation.divergence) {
    const Divergence& divergence = *explanation.divergence;
    json["divergence"] = {{"number", divergence.number}, {"group", divergence.group}, {"odd", divergence.odd}};
    for (const auto& [rank, record] : divergence.records)
      json["divergence"]["ranks"].push_back({{"rank", rank}, {"record", to_json(record)}});
  }
  for (const Lateness& late : explanation.last_to_come)
    json["last_to_come"].push_back(
        {{"rank", late.rank}, {"times", late.times}, {"of", late.of}, {"seconds", late.seconds}});
  return json;
}

/// For Perfetto (ui.perfetto.dev) and chrome://tracing: a process a rank; what is in flight together lies on lanes.
Json timeline(const Trace& trace) {
  Json events = Json::array();
  double origin = trace.ranks.front().last_life;
  for (const RankTrace& rank : trace.ranks)
    for (const Span& span : rank.spans) origin = std::min(origin, span.begin);
  for (const RankTrace& rank : trace.ranks) {
    const std::string name = "rank " + std::to_string(rank.rank) + " on " + rank.host;
    events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", rank.rank}, {"args", {{"name", name}}}});
    std::vector<double> lanes;  // when each is free
    for (const Span& span : rank.spans) {
      auto lane = std::find_if(lanes.begin(), lanes.end(), [&](double free) { return free <= span.begin; });
      if (lane == lanes.end()) lane = lanes.insert(lanes.end(), 0);
      *lane = span.end;
      events.push_back({{"name", span.record.label.view()},
                        {"cat", name_of(span.record.kind())},
                        {"ph", "X"},
                        {"ts", 1e6 * (span.begin - origin)},
                        {"dur", 1e6 * (span.end - span.begin)},
                        {"pid", rank.rank},
                        {"tid", lane - lanes.begin()},
                        {"args", to_json(span.record)}});
      if (!span.exact) events.back()["args"]["time"] = "not taken: put between its neighbours";
      if (span.record.outcome() != Outcome::done) events.back()["args"]["outcome"] = "not done";
    }
  }
  return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}};
}

bool parse(int argc, char** argv, Options& options) {
  CLI::App app("Explains the records that the ranks of a job leave: who went another way, whom the others waited for.",
               "ronda_trace");
  app.set_version_flag("--version", std::string("ronda_trace (Ronda) ") + version());
  app.add_option(
      "places", options.places,
      "folders of records, or their files (rank-0000.ronda, …); without any it lists the jobs that have left "
      "records on this host, and those that run");
  app.add_option("--json", options.json, "write the same for programs");
  app.add_option("--timeline", options.timeline,
                 "write what each rank did when, for ui.perfetto.dev or chrome://tracing");
  return apps::parse(app, argc, argv);
}

std::string began_text(double seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm local{};
  std::array<char, 32> text{};
  if (::localtime_r(&time, &local) == nullptr || std::strftime(text.data(), text.size(), "%F %T", &local) == 0)
    return "at an unknown time  ";
  return text.data();
}

/// `2026-11-22 10:12:44  4 ranks   running  /dev/shm/ronda-1000/1712783361  mnist_mlp --epochs 10`.
std::string line_of(const std::filesystem::path& folder, const Trace& trace) {
  const RankTrace& first = trace.ranks.front();
  const bool well =
      trace.missing.empty() && std::ranges::all_of(trace.ranks, [](const auto& rank) { return rank.ended; });
  const char* how = records_in_use(folder) ? "running" : well ? "ended well" : "ended badly";
  std::array<char, 64> columns{};
  std::snprintf(columns.data(), columns.size(), "  %-9s  %-11s  ", counted(trace.size, "rank").c_str(), how);
  return began_text(first.began) + columns.data() + printable(folder.string()) + "  " +
         printable(first.program.empty() ? "a program without a name" : first.program);
}

/// The jobs of this user that have left records where they do unless told otherwise, the latest first.
void list_jobs() {
  std::vector<std::pair<double, std::string>> jobs;
  std::error_code ignored;
  for (const auto& place : record_places()) {
    const auto own = record_folder_in(place);
    if (!own) continue;
    for (const auto& entry : std::filesystem::directory_iterator(own->parent_path(), ignored)) try {
        const std::filesystem::path& folder = entry.path();
        const Trace trace = read_trace(std::span(&folder, 1));
        jobs.emplace_back(trace.ranks.front().began, line_of(folder, trace));
      } catch (const Error&) {  // it is being made, or removed, or none of ours
      }
  }
  std::ranges::sort(jobs, std::greater());
  for (const auto& [began, line] : jobs) std::cout << line << "\n";
  if (jobs.empty())
    std::cout << "no job of yours runs on this host, and none has left records: those that end well keep none\n";
  else
    std::cout << "ronda_trace FOLDER tells what each of its ranks did last\n";
}

std::string text_of(const Json& json) { return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

void require_outputs(const Options& options) {
  const std::vector<Output> outputs{{"--json", options.json}, {"--timeline", options.timeline}};
  require_apart(outputs);
  for (const Output& output : outputs) {
    if (output.path.extension() == ".ronda")
      throw InputError(printable(output.path.string()) + " has a record's name: give a file of JSON another one");
    apps::require_output(output);
  }
}

/// If a file cannot be written, the others still are. Throws ResourceError that names each missing one.
void write_files(const Options& options, const Trace& trace, const Explanation& explanation) {
  std::string failures;
  const auto attempt = [&](const std::filesystem::path& file, const auto& content) {
    try {
      if (!file.empty()) write_text(file, text_of(content()));
    } catch (const Error& error) {
      failures += (failures.empty() ? "" : "; ") + std::string(error.what());
    }
  };
  attempt(options.json, [&] { return to_json(trace, explanation); });
  attempt(options.timeline, [&] { return timeline(trace); });
  if (!failures.empty()) throw ResourceError(failures);
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_alone([&] {
    Options options;
    if (!parse(argc, argv, options)) return 0;
    if (options.places.empty()) {
      if (!options.json.empty() || !options.timeline.empty())
        throw InputError("--json and --timeline are of one job: name the folder of its records");
      list_jobs();
      return 0;
    }
    const Trace trace = read_trace(options.places);
    require_outputs(options);
    const Explanation explanation = explain(trace);
    for (const std::string& note : trace.notes) std::cerr << "ronda: warning: " << note << "\n";
    std::cout << explanation.text;
    write_files(options, trace, explanation);
    return 0;
  });
}
