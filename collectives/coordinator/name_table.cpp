#include <ronda/collectives/coordinator/name_table.hpp>

#include <algorithm>

namespace ronda {

NameTable::NameTable(std::vector<std::string> rank_names)
    : rank_names_(std::move(rank_names)), joined_(rank_names_.size()), closed_(rank_names_.size()) {}

std::optional<std::uint32_t> NameTable::find(std::string_view text) const {
  const auto found = ids_.find(text);
  if (found == ids_.end()) return {};
  return found->second;
}

bool NameTable::anybody_joined() const noexcept {
  return std::find(joined_.begin(), joined_.end(), char{1}) != joined_.end();
}

std::optional<int> NameTable::first_closed() const noexcept {
  const auto first = std::find(closed_.begin(), closed_.end(), char{1});
  if (first == closed_.end()) return {};
  return static_cast<int>(first - closed_.begin());
}

NameTable::Changes NameTable::hear(std::span<const std::vector<Announcement>> by_rank) {
  Changes changes;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
    for (const Announcement& announcement : by_rank[rank]) switch (announcement.what) {
        case Announcement::What::tensors: hear_tensors(rank, announcement, changes); break;
        case Announcement::What::joined:
          joined_[rank] = 1;
          last_to_join_ = static_cast<int>(rank);
          break;
        case Announcement::What::closed: closed_[rank] = 1; break;
        case Announcement::What::left:
          if (!changes.left)
            changes.left = rank_text(rank) + " has left without closing the coordinator" +
                           (announcement.name.empty() ? "" : ": " + announcement.name);
          break;
      }
  settle(changes);
  changes.all_closed = std::find(closed_.begin(), closed_.end(), char{0}) == closed_.end();
  changes.all_joined = anybody_joined();  // who has closed joins nothing, and keeps nobody waiting
  for (std::size_t rank = 0; rank < joined_.size(); ++rank)
    changes.all_joined &= joined_[rank] != 0 || closed_[rank] != 0;
  if (changes.all_joined) std::fill(joined_.begin(), joined_.end(), char{0});
  return changes;
}

void NameTable::hear_tensors(std::size_t rank, const Announcement& announcement, Changes& changes) {
  auto found = ids_.find(announcement.name);
  if (found == ids_.end()) {
    if (names_.size() == capacity) {
      changes.failures.push_back(
          {announcement.name, "there are " + std::to_string(capacity) +
                                  " names already; a name is for use again and again: take the same ones every step"});
      return;
    }
    ids_.emplace(announcement.name, static_cast<std::uint32_t>(names_.size()));
    names_.push_back({announcement.name, announcement.descriptor, 1, false, {}});
    return;
  }
  Name& name = names_[found->second];
  if (!name.contested) {
    if (name.descriptor == announcement.descriptor) return;
    name.contested = true;
    name.announced.assign(rank_names_.size(), std::nullopt);
    contested_.push_back(found->second);
    changes.contested.push_back(found->second);
  }
  name.announced[rank] = announcement.descriptor;
}

/// Ends what is contested, where every rank that takes part has said what it has.
void NameTable::settle(Changes& changes) {
  std::erase_if(contested_, [&](std::uint32_t id) {
    Name& name = names_[id];
    const Descriptor* first = nullptr;
    bool equal = true;
    for (std::size_t rank = 0; rank < rank_names_.size(); ++rank) {
      const auto& announced = name.announced[rank];
      if (!announced && joined_[rank]) continue;
      if (!announced) return false;
      if (first == nullptr) first = &*announced;
      equal = equal && *announced == *first;
    }
    if (first == nullptr) return false;
    if (!equal) changes.failures.push_back({name.text, disagreement(name)});
    name.descriptor = Descriptor(*first);
    ++name.version;
    name.contested = false;
    name.announced.clear();
    return true;
  });
}

void NameTable::forget_contest(std::uint32_t id) {
  names_[id].contested = false;
  names_[id].announced.clear();
  std::erase(contested_, id);
}

/// `rank 0 on a: sum of float32 (3), ranks 1, 2: sum of float32 (4)`.
std::string NameTable::disagreement(const Name& name) const {
  std::string text = "the ranks submit '" + name.text + "' differently";
  std::vector<char> told(rank_names_.size());
  const char* before = ": ";
  for (std::size_t rank = 0; rank < rank_names_.size(); ++rank) {
    if (told[rank] || !name.announced[rank]) continue;
    std::string ranks;
    for (std::size_t other = rank; other < rank_names_.size(); ++other) {
      if (!name.announced[other] || !(*name.announced[other] == *name.announced[rank])) continue;
      told[other] = 1;
      ranks += (ranks.empty() ? "" : ", ") + rank_text(other);
    }
    text += before + ranks + ": " + name.announced[rank]->text();
    before = "; ";
  }
  return text;
}

}  // namespace ronda
