#include <ronda/core/cores.hpp>
#include <ronda/core/denormals.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/text.hpp>

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

namespace ronda {

void detail::parallel_ranges(int threads, std::size_t count, RangeFunction function, void* context) {
  const bool flushes = DenormalScope::flushes();
#pragma omp parallel num_threads(threads)
  {
    const DenormalScope as_the_caller(flushes);
    // OpenMP may grant fewer threads than asked for: the partition follows what was asked, so that results do not
    // change.
    const int granted = omp_get_num_threads();
    for (int worker = omp_get_thread_num(); worker < threads; worker += granted) {
      const Range range = part_of(count, static_cast<std::size_t>(worker), static_cast<std::size_t>(threads));
      if (range.size() > 0) function(context, range);
    }
  }
}

namespace {

/// The largest team that OpenMP grants the calling thread.
struct TeamLimit {
  int threads;
  std::string cause;  ///< the variable that limits it
};
TeamLimit team_limit() {
  if (omp_get_active_level() < omp_get_max_active_levels())
    return {omp_get_thread_limit(), "OMP_THREAD_LIMIT=" + std::to_string(omp_get_thread_limit())};
  if (omp_get_active_level() == 0) return {1, "OMP_MAX_ACTIVE_LEVELS=0"};
  return {1, "a parallel region of OpenMP that is active already"};
}

void require_granted(int threads) {
  const TeamLimit limit = team_limit();
  if (threads > limit.threads)
    throw InputError(setting("threads", threads) + ": OpenMP grants " + counted(limit.threads, "thread") + " (" +
                     limit.cause + "); remove that setting, or give " + setting("threads", limit.threads));
}

/// The first number of OMP_NUM_THREADS, which has one for each level of nested regions; 0 without a number.
int threads_of_environment() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  const long threads = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return threads > 0 && threads < 1 << 20 ? static_cast<int>(threads) : 0;
}

/// The arguments of the dynamic loader, if the program was started through it: main does not get them.
std::vector<std::string> loader_arguments(char** arguments) {
  std::ifstream file("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  std::size_t own = 0;
  while (arguments[own] != nullptr) ++own;
  words.resize(words.size() - std::min(own, words.size()));
  return words;
}

}  // namespace

ThreadCount count_threads(int asked, int cores) {
  const int variable = threads_of_environment();
  const TeamLimit limit = team_limit();
  const int wanted = asked > 0 ? asked : variable > 0 ? variable : cores, threads = std::min(wanted, limit.threads);
  if (threads >= (asked > 0 ? asked : cores)) return {threads};
  const std::string computes = ": a rank computes with " + counted(threads, "thread");
  if (asked > threads)
    return {threads, setting("threads", asked) + computes + ", because OpenMP grants no more (" + limit.cause +
                         "); remove that setting for more"};
  const std::string idle = computes + " and has " + counted(cores, "core");
  if (threads < wanted || cores > limit.threads) return {threads, limit.cause + idle + "; without it a rank uses all"};
  return {threads,
          "OMP_NUM_THREADS=" + std::to_string(variable) + idle + "; " + setting("threads", cores) + " uses all"};
}

void use_threads(int threads) {
  threads = std::max(threads, 1);
  require_granted(threads);
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
}

void unbind_first_thread() {
  if (CoreMask::of_openmp().count() > 0) CoreMask::of(0).bind_thread();
}

void spin_briefly(char** arguments) {
  // So many looks take 30 to 150 us, somewhat more than a thread takes to wake up: serial pieces of a step are shorter.
  constexpr const char *variable = "GOMP_SPINCOUNT", *looks = "3000";
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv(variable) != nullptr) return;
  if (CoreMask::of(0).count() < 2 || ::setenv(variable, looks, 1) != 0) return;
  unbind_first_thread();  // OpenMP will read the cores of the process anew
  std::vector<std::string> loader = loader_arguments(arguments);
  std::vector<char*> words;
  for (std::string& word : loader) words.push_back(word.data());
  for (char** word = arguments; *word != nullptr; ++word) words.push_back(*word);
  words.push_back(nullptr);
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);  // execv's own link would be its name
  if (!error) ::execv(program.c_str(), words.data());
  ::unsetenv(variable);
}

}  // namespace ronda
