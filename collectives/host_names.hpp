#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace ronda {

/// The host name of each rank. Each name is stored once, plus 4 bytes per rank.
class HostNames {
 public:
  HostNames() = default;
  /// @param hosts  by rank
  HostNames(std::initializer_list<std::string_view> hosts) {
    for (const std::string_view host : hosts) add(host);
  }

  /// Appends the host of the next rank. Takes time proportional to the number of hosts, but little if recent ranks have
  /// the same host.
  void add(std::string_view host) {
    const auto found = std::find(names_.rbegin(), names_.rend(), host);
    const auto place = found == names_.rend() ? names_.size() : static_cast<std::size_t>(names_.rend() - found) - 1;
    if (place == names_.size()) names_.emplace_back(host);
    place_of_rank_.push_back(static_cast<std::uint32_t>(place));
  }

  [[nodiscard]] std::size_t size() const noexcept { return place_of_rank_.size(); }  ///< ranks
  [[nodiscard]] const std::string& operator[](std::size_t rank) const { return names_[place_of_rank_[rank]]; }
  [[nodiscard]] const std::string& back() const { return (*this)[size() - 1]; }
  /// The distinct hosts, in the order of their first ranks.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  std::vector<std::string> names_;
  std::vector<std::uint32_t> place_of_rank_;
};

}  // namespace ronda
