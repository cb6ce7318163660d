#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace ronda {

/// The name of each rank's host. A name is kept once, however many ranks have it: 4 bytes a rank.
class HostNames {
 public:
  HostNames() = default;
  /// By rank.
  HostNames(std::initializer_list<std::string_view> hosts) {
    for (const std::string_view host : hosts) add(host);
  }

  /// The host of the next rank. Takes longer the more hosts there are, unless it is the host of a rank just before.
  void add(std::string_view host) {
    const auto found = std::find(names_.rbegin(), names_.rend(), host);
    const auto place = found == names_.rend() ? names_.size() : static_cast<std::size_t>(names_.rend() - found) - 1;
    if (place == names_.size()) names_.emplace_back(host);
    place_of_rank_.push_back(static_cast<std::uint32_t>(place));
  }

  [[nodiscard]] std::size_t size() const noexcept { return place_of_rank_.size(); }  ///< ranks
  [[nodiscard]] const std::string& operator[](std::size_t rank) const { return names_[place_of_rank_[rank]]; }
  [[nodiscard]] const std::string& back() const { return (*this)[size() - 1]; }
  /// Each host once, in the order of their first ranks.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  std::vector<std::string> names_;
  std::vector<std::uint32_t> place_of_rank_;
};

}  // namespace ronda
