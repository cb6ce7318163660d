#include <ronda/collectives/group/group.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <charconv>
#include <new>

namespace ronda {
namespace {

using Differing = Communicator::Group::Differing;

/// Where ranks tell how their work ended.
constexpr std::string_view end_of_phase = "the end of a phase";

template <class Failure>
[[noreturn]] void throw_on_all(const Communicator& communicator, Failure error) {
  // Ranks outside the group know nothing of it: then it is a failure of these, not of all.
  if (communicator.group().is_whole_world()) error.set_agreed();
  throw error;
}

[[noreturn]] void throw_on_all(const Communicator& communicator, ExitStatus status, const std::string& text) {
  if (status == ExitStatus::bad_input) throw_on_all(communicator, InputError(text));
  throw_on_all(communicator, Error(text, status));
}

/// How `work` ended, in a form that ranks can exchange: empty, or the status and the text. What is agreed all ranks
/// have met already: that is thrown.
std::string outcome_of(const std::function<void()>& work) {
  const auto say = [](ExitStatus status, const char* text) {
    return std::to_string(static_cast<int>(status)) + " " + text;
  };
  try {
    work();
    return {};
  } catch (const Error& error) {
    if (error.agreed()) throw;
    return say(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return say(ExitStatus::failed, "out of memory");
  } catch (const std::exception& error) {
    return say(ExitStatus::failed, error.what());
  } catch (...) {
    return say(ExitStatus::failed, "something that is no exception was thrown");
  }
}

std::pair<ExitStatus, std::string> parse_outcome(const std::string& outcome) {
  int status = 1;
  const auto end = std::from_chars(outcome.data(), outcome.data() + outcome.size(), status).ptr;
  return {static_cast<ExitStatus>(status), outcome.substr(static_cast<std::size_t>(end - outcome.data()) + 1)};
}

/// Where a rank is at another place because it failed and came to the end of its work, that is what is to be told.
void require_one_place(const Communicator& communicator, const Differing& differing) {
  const Communicator::Group& group = communicator.group();
  for (std::size_t rank = 0; rank < differing.places.size(); ++rank) {
    if (differing.places[rank] != end_of_phase || differing.texts[rank].empty()) continue;
    const auto [status, text] = parse_outcome(differing.texts[rank]);
    throw_on_all(communicator, status, group.name_of_rank(rank) + ": " + text);
  }
  const auto other = std::find_if(differing.places.begin(), differing.places.end(),
                                  [&](const std::string& place) { return place != differing.places[0]; });
  if (other == differing.places.end()) return;
  throw_on_all(communicator, ExitStatus::failed,
               "the ranks are at different places of the program: " + group.name_of_rank(0) + " at " +
                   differing.places[0] + ", " +
                   group.name_of_rank(static_cast<std::size_t>(other - differing.places.begin())) + " at " + *other);
}

/// The first line in which the two differ; one of them may have ended before it.
std::string first_difference(std::string_view a, std::string_view b) {
  const auto line_of = [](std::string_view text, std::size_t at) {
    if (at > text.size()) return std::string("nothing");
    return std::string("'").append(text.substr(at, text.find('\n', at) - at)).append("'");
  };
  const auto differ = static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  const auto ends_line = [&](std::string_view text) { return differ < text.size() && text[differ] == '\n'; };
  if ((differ == a.size() && ends_line(b)) || (differ == b.size() && ends_line(a)))
    return line_of(a, differ + 1) + " and " + line_of(b, differ + 1);
  const std::size_t before = differ == 0 ? std::string_view::npos : a.rfind('\n', differ - 1);
  const std::size_t line = before == std::string_view::npos ? 0 : before + 1;
  return line_of(a, line) + " and " + line_of(b, line);
}

}  // namespace

void agree(const Communicator& communicator, const std::function<void()>& work) {
  const std::string mine = outcome_of(work);
  Communicator::Group& group = communicator.group();
  const auto differing = group.compare(end_of_phase, mine);
  if (!differing && mine.empty()) return;
  if (!differing) {  // all met the same: no rank is to be named
    const auto [status, text] = parse_outcome(mine);
    throw_on_all(communicator, status, text);
  }
  require_one_place(communicator, *differing);
  std::size_t rank = 0;
  while (differing->texts[rank].empty()) ++rank;
  const auto [status, text] = parse_outcome(differing->texts[rank]);
  throw_on_all(communicator, status, group.name_of_rank(rank) + ": " + text);
}

void require_equal(const Communicator& communicator, std::string_view what, std::string_view text) {
  Communicator::Group& group = communicator.group();
  const auto differing = group.compare(what, text);
  if (!differing) return;
  require_one_place(communicator, *differing);
  std::size_t other = 0;
  while (differing->texts[other] == differing->texts[0]) ++other;
  throw_on_all(communicator, ExitStatus::bad_input,
               std::string(what) + " of " + group.name_of_rank(0) + " and " + group.name_of_rank(other) +
                   " differ: " + first_difference(differing->texts[0], differing->texts[other]));
}

}  // namespace ronda
