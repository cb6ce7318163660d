#include <ronda/collectives/link_costs.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/runtime/io/plan_file.hpp>
#include <ronda/runtime/io/whole_file.hpp>
#include <ronda/runtime/trainer/plan_difference.hpp>
#include <ronda/runtime/trainer/plan_store.hpp>

#include <algorithm>
#include <sstream>

namespace ronda {
namespace {

/// Under which a user's plan has what messages cost.
constexpr const char* links_question = "links";

std::string to_text(const Picks& picks) {
  std::string text;
  for (const auto& [question, choice] : picks) text += question + "\t" + choice + "\n";
  return text;
}

Picks from_text(const std::string& text) {
  Picks picks;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto tab = line.find('\t');
    picks.emplace(line.substr(0, tab), line.substr(tab + 1));
  }
  return picks;
}

void check_environment(const PlanFile& plan, const std::map<std::string, std::string>& mine,
                       const std::filesystem::path& file) {
  std::string differences;
  for (const auto& [key, value] : mine) {
    const auto entry = plan.environment.find(key);
    const std::string found = entry == plan.environment.end() ? "nothing" : "'" + entry->second + "'";
    if (found != "'" + value + "'")
      differences += (differences.empty() ? "" : "; ") + key + " is '" + value + "' here, the plan has " + found;
  }
  if (!differences.empty())
    throw InputError(file.string() + ": this plan is for another set-up: " + differences +
                     "; name a new file to make a plan for this one");
}

}  // namespace

PlanStore::PlanStore(const World& world, std::filesystem::path file, std::map<std::string, std::string> environment)
    : communicator_(world.communicator()),
      link_store_(communicator_, world.progress()),
      file_(std::move(file)),
      environment_(std::move(environment)),
      users_(!file_.empty()) {
  const auto directory = users_ || communicator_.rank() != 0 ? std::nullopt : cache_directory();
  if (!directory) return;
  Hash hash;
  for (const auto& [key, value] : environment_) hash.add(key).add(value);
  file_ = *directory / ("plan-" + hash.text() + ".json");
}

Picks PlanStore::load() {
  agree(communicator_, [&] {
    if (communicator_.rank() != 0 || file_.empty()) return;
    try {
      if (!is_there(file_)) return;
      const PlanFile plan = read_plan(file_);
      check_environment(plan, environment_, file_);
      known_.insert(plan.picks.begin(), plan.picks.end());
      entries_ = plan.entries;
      given_ = users_;
      check_links();
    } catch (const Error& error) {
      if (users_) throw;
      known_.clear();
      damage_ = error.what();
    }
  });
  given_ = communicator_.broadcast_text(given_ ? "given" : "") == "given";
  known_ = from_text(communicator_.broadcast_text(to_text(known_)));
  if (!given_) link_store_.load();
  if (const auto links = known_.find(links_question); given_ && links != known_.end())
    communicator_.use_link_costs(LinkCosts::parse(links->second));
  known_links_ = links();  // an earlier training of this process may have measured them
  return known_;
}

std::vector<std::string> PlanStore::damages() const {
  std::vector<std::string> lines;
  for (const auto& damage : {damage_, link_store_.damage()})
    if (!damage.empty()) lines.push_back("a file of the cache is damaged, and made anew: " + damage);
  return lines;
}

/// In the user's file.
void PlanStore::check_links() {
  const auto links = known_.find(links_question);
  if (!users_ || links == known_.end()) return;
  try {
    static_cast<void>(LinkCosts::parse(links->second));
  } catch (const InputError& error) {
    throw InputError(file_.string() + " is no plan: its \"links\": " + error.message() +
                     "; remove the file, and the next run writes a new one");
  }
}

/// What the communicator knows by now.
std::string PlanStore::links() const {
  const LinkCosts* costs = communicator_.known_link_costs();
  return costs == nullptr ? std::string() : costs->text();
}

void PlanStore::keep(const Strategy& strategy, EventSink& sink) {
  if (!given_) link_store_.keep();
  agree(communicator_, [&] {
    if (communicator_.rank() != 0) return;
    if (given_) return compare(strategy);
    if (!users_ && damage_.empty() && !strategy.plan().timed_something) return;
    Message why = file_.empty() ? "there is no folder for it that can be written to" : "";
    try {
      if (why.empty()) write(strategy);
    } catch (const Error& error) {
      if (users_) throw;
      why = error.message();
    }
    if (!strategy.plan().timed_something) return;
    if (why.empty())
      sink.on_note("what was timed is kept: the next run starts at once");
    else
      sink.on_message(Severity::note, "what was timed could not be kept (" + why +
                                          "): the next run times again; RONDA_CACHE_DIR, or " + setting("plan") +
                                          ", names a place");
  });
}

void PlanStore::compare(const Strategy& strategy) const {
  if (links() != known_links_)
    throw InputError(file_.string() +
                     ": this plan does not say what messages cost where this run's allreduces depend on it; name a new "
                     "file to make a plan for this run");
  if (const auto difference = difference_of_plans(strategy.plan_lines(), entries_))
    throw InputError(file_.string() + ": this run comes to another plan than the file's: '" + difference->first +
                     "' here, '" + difference->second + "' in the file; name a new file to make a plan for this run");
}

void PlanStore::write(const Strategy& strategy) const {
  PlanFile plan{.environment = environment_, .picks = {}, .entries = {}, .hash = strategy.plan_hash()};
  if (users_)
    plan.entries = strategy.plan_lines();  // a cache serves many models: it keeps the answers alone
  else
    plan.picks.insert(known_.begin(), known_.end());
  for (const auto& [question, choice] : strategy.picks()) plan.picks.insert_or_assign(question, choice);
  if (users_ && !links().empty()) plan.picks.insert_or_assign(links_question, links());
  write_plan(file_, plan);
}

}  // namespace ronda
