#include <ronda/coordinator/detail/name_table.hpp>

#include <algorithm>

namespace ronda {

NameTable::NameTable(int ranks, std::function<std::string(int)> name_of_rank)
    : ranks_(ranks), name_of_rank_(std::move(name_of_rank)) {}

std::optional<std::uint32_t> NameTable::find(std::string_view text) const {
  const auto found = ids_.find(text);
  if (found == ids_.end()) return {};
  return found->second;
}

NameTable::Changes NameTable::hear(std::span<const Announcement> announcements) {
  Changes changes;
  for (const Announcement& announcement : announcements) switch (announcement.what) {
      case Announcement::What::tensors: hear_tensors(announcement, changes); break;
      case Announcement::What::joined:
        joined_.add(announcement.ranks);
        last_to_join_ = announcement.ranks.last();
        break;
      case Announcement::What::closed: closed_.add(announcement.ranks); break;
      case Announcement::What::left:
        if (!changes.left)
          changes.left = text_of(announcement.ranks) + " left without closing the coordinator" +
                         (announcement.name.empty() ? "" : ": " + announcement.name);
        break;
      case Announcement::What::has: break;
    }
  settle(changes);
  const auto everybody = static_cast<std::size_t>(ranks_);
  changes.all_closed = closed_.size() == everybody;
  RankSet idle = joined_;  // who has closed joins nothing, and keeps nobody waiting
  idle.add(closed_);
  changes.all_joined = anybody_joined() && idle.size() == everybody;
  if (changes.all_joined) joined_.clear();
  return changes;
}

void NameTable::hear_tensors(const Announcement& announcement, Changes& changes) {
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
    contested_.push_back(found->second);
    changes.contested.push_back(found->second);
  }
  const auto variant = std::ranges::find(name.variants, announcement.descriptor, &Variant::descriptor);
  if (variant == name.variants.end())
    name.variants.push_back({announcement.descriptor, announcement.ranks});
  else
    variant->ranks.add(announcement.ranks);
}

/// Ends what is contested, where every rank that takes part has said what it has.
void NameTable::settle(Changes& changes) {
  std::erase_if(contested_, [&](std::uint32_t id) {
    Name& name = names_[id];
    RankSet accounted_for = joined_;
    for (const Variant& variant : name.variants) accounted_for.add(variant.ranks);
    if (name.variants.empty() || accounted_for.size() < static_cast<std::size_t>(ranks_)) return false;
    std::ranges::sort(name.variants, {}, [](const Variant& variant) { return variant.ranks.first(); });
    if (name.variants.size() > 1) changes.failures.push_back({name.text, disagreement(name)});
    name.descriptor = std::move(name.variants.front().descriptor);
    ++name.version;
    name.contested = false;
    name.variants.clear();
    return true;
  });
}

void NameTable::forget_contest(std::uint32_t id) {
  names_[id].contested = false;
  names_[id].variants.clear();
  std::erase(contested_, id);
}

/// `rank 0 on a: sum of float32 (3); rank 1 on b, rank 2 on c: sum of float32 (4)`.
std::string NameTable::disagreement(const Name& name) const {
  std::string text = "the ranks submit '" + name.text + "' differently";
  const char* before = ": ";
  for (const Variant& variant : name.variants) {
    text += before + text_of(variant.ranks) + ": " + variant.descriptor.text();
    before = "; ";
  }
  return text;
}

}  // namespace ronda
