#include <ronda/core/core_mask.hpp>

#include <omp.h>
#include <sched.h>

#include <bit>
#include <fstream>
#include <set>
#include <vector>

namespace ronda {

CoreMask CoreMask::of(int process) noexcept {
  CoreMask mask;
  if (sched_getaffinity(process, sizeof mask.words_, reinterpret_cast<cpu_set_t*>(mask.words_.data())) != 0)
    mask.words_ = {};
  if (process == 0) mask |= of_openmp();
  return mask;
}

CoreMask CoreMask::of_openmp() {
  CoreMask mask;
  if (omp_get_proc_bind() == omp_proc_bind_false) return mask;
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> cores(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, cores.data());
    for (const int core : cores) {
      const auto index = static_cast<std::size_t>(core);
      if (core >= 0 && index < most) mask.words_[index / bits] |= 1UL << index % bits;
    }
  }
  return mask;
}

void CoreMask::bind_thread() const noexcept {
  static_cast<void>(sched_setaffinity(0, sizeof words_, reinterpret_cast<const cpu_set_t*>(words_.data())));
}

std::size_t CoreMask::count() const noexcept {
  std::size_t count = 0;
  for (const unsigned long word : words_) count += static_cast<std::size_t>(std::popcount(word));
  return count;
}

std::size_t CoreMask::physical() const {
  std::set<std::string> cores;  // each by the list of its threads
  for (std::size_t core = 0; core < most; ++core) {
    if (!has(core)) continue;
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(core) + "/topology/thread_siblings_list");
    std::string threads;
    if (!std::getline(file, threads)) return count();
    cores.insert(threads);
  }
  return cores.size();
}

CoreMask& CoreMask::operator|=(const CoreMask& other) noexcept {
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  return *this;
}

std::string CoreMask::text() const {
  std::string text;
  for (std::size_t first = 0; first < most; ++first) {
    if (!has(first)) continue;
    std::size_t last = first;
    while (last + 1 < most && has(last + 1)) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
    first = last;
  }
  return text;
}

}  // namespace ronda
