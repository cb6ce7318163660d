#include <ronda/core/core_mask.hpp>

#include <sched.h>

#include <bit>
#include <fstream>
#include <set>

namespace ronda {

CoreMask CoreMask::of(int process) noexcept {
  CoreMask mask;
  if (sched_getaffinity(process, sizeof mask.words_, reinterpret_cast<cpu_set_t*>(mask.words_.data())) != 0)
    mask.words_ = {};
  return mask;
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
