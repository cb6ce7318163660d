#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ronda/collectives/members/carried_error.hpp>
#include <ronda/collectives/members/members.hpp>
#include <ronda/core/message.hpp>

namespace ronda {

/// What the ranks of a group agree on outside their collectives: texts, whether they do the same, how their work went.
/// By messages that the engine moves beside all others, so that a rank that waits here still does its part elsewhere.
/// Every function is collective unless it says otherwise.
///
/// An error of one rank is thrown on all ranks. It travels as a CarriedError, and names its rank unless all have the
/// same error. It is `agreed` if the group is the whole world; ranks outside a smaller group do not receive it.
class Agreement {
 public:
  /// @param members  outlives this object
  explicit Agreement(Members& members) : members_(members) {}

  [[nodiscard]] std::vector<std::string> gather_texts(std::string_view text);
  [[nodiscard]] std::string broadcast_text(std::string_view text, int root);

  /// See `agree` in communicator.hpp.
  void run(const std::function<void()>& work);
  /// See `require_equal` in communicator.hpp.
  void require_equal(const Message& what, std::string_view text);

  /// `say` returns a description of this rank's arguments, or throws if they are wrong. If it throws on any rank, all
  /// throw that error; if the descriptions or the places differ, all throw a LogicError.
  void require_same(std::string_view place, const std::function<std::string()>& say);
  void require_same(std::string_view place, std::string_view text) {
    require_same(place, [&] { return std::string(text); });
  }

  /// Runs `check`, for arguments that the ranks do not compare. If it throws on all ranks, all throw that error. If it
  /// throws on some ranks only, the others are in the collective already. The failed rank must not join a later
  /// collective in its place, so it waits for them here until the watchdog ends the job.
  void check_here(std::string_view place, const std::function<void()>& check) {
    try {
      check();
    } catch (const Error&) {
      require_same(place, [&] {
        check();
        return std::string();
      });
    }
  }

  /// Runs `work`, which fails on all ranks or on none, at the same place and for the same reason. Not collective.
  template <class Work>
  void alike(Work&& work) const {
    try {
      work();
    } catch (Error& error) {
      if (members_.is_whole_world()) error.set_agreed();
      throw;
    }
  }

  /// Runs `work`, which uses the group's assemblies, on all ranks at the same place; `what` is for records. Collectives
  /// in flight continue meanwhile.
  template <class Work>
  auto together(std::string_view what, Work&& work) {
    const RecordedCall call(members_.ledger(), what);
    members_.all().at(what);
    members_.on_node().at(what);
    return work();
  }

 private:
  /// What the ranks say where they do not all say the same, by rank.
  struct Differing {
    std::vector<std::string> places, texts;
    [[nodiscard]] bool at_one_place() const;
    /// A rank that says something else than rank 0.
    [[nodiscard]] std::size_t other() const;
  };
  /// Nothing where `place` (of the program) and `text` are the same on all ranks, which costs one small exchange.
  [[nodiscard]] std::optional<Differing> compare(std::string_view place, std::string_view text);
  void raise_first_failure(const Differing& differing, std::string_view place) const;
  void require_one_place(const Differing& differing) const;
  [[noreturn]] void raise(const CarriedError& failure, const std::string& who = {}) const {
    failure.raise(who, members_.is_whole_world());
  }

  Members& members_;
};

}  // namespace ronda
