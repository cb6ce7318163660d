#include <ronda/collectives/members/agreement.hpp>
#include <ronda/core/hash.hpp>

#include <algorithm>

namespace ronda {
namespace {

/// Where ranks tell how their work ended.
constexpr std::string_view end_of_phase = "the end of a phase";

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

// ---- texts ----------------------------------------------------------------------------------------------------------

std::vector<std::string> Agreement::gather_texts(std::string_view text) {
  return together("gathering texts", [&] { return members_.all().gather_texts(text); });
}

std::string Agreement::broadcast_text(std::string_view text, int root) {
  if (root < 0 || root >= members_.size())
    throw LogicError("a text is broadcast by rank " + std::to_string(root) + ", and there are ranks 0 to " +
                     std::to_string(members_.size() - 1));
  return together("broadcasting a text", [&] {
    std::string result(members_.rank() == root ? text : std::string_view());
    std::uint64_t length = result.size();
    members_.all().broadcast(std::as_writable_bytes(std::span(&length, 1)), root);
    result.resize(length);
    members_.all().broadcast(std::as_writable_bytes(std::span(result)), root);
    return result;
  });
}

// ---- the same on all ranks ------------------------------------------------------------------------------------------

bool Agreement::Differing::at_one_place() const {
  return std::ranges::all_of(places, [&](const std::string& place) { return place == places[0]; });
}

std::size_t Agreement::Differing::other() const {
  std::size_t rank = 0;
  while (places[rank] == places[0] && texts[rank] == texts[0]) ++rank;
  return rank;
}

std::optional<Agreement::Differing> Agreement::compare(std::string_view place, std::string_view text) {
  return together(place, [&]() -> std::optional<Differing> {
    Assembly& all = members_.all();
    all.at("comparing");  // ranks that are at different places find that out here
    const auto hashes = all.gather(Hash().add(place).add(text).value());
    if (std::ranges::all_of(hashes, [&](std::uint64_t hash) { return hash == hashes[0]; })) return {};
    return Differing{all.gather_texts(place), all.gather_texts(text)};
  });
}

/// Of the lowest rank that is at `place` and has one.
void Agreement::raise_first_failure(const Differing& differing, std::string_view place) const {
  for (std::size_t rank = 0; rank < differing.places.size(); ++rank)
    if (const auto failure = CarriedError::parse(differing.texts[rank]); failure && differing.places[rank] == place)
      raise(*failure, members_.name_of_rank(rank) + ": ");
}

void Agreement::require_same(std::string_view place, const std::function<std::string()>& say) {
  std::string text;
  try {
    text = say();
  } catch (const CommunicationError&) {
    throw;  // the others cannot be told
  } catch (...) {
    text = CarriedError::current(place).text();
  }
  const auto failure = CarriedError::parse(text);
  std::optional<Differing> differing;
  try {
    differing = compare(place, text);
  } catch (const CommunicationError& error) {  // others are elsewhere in what this rank has not come through
    if (failure) throw CommunicationError(failure->why() + "; " + error.message());
    throw;
  }
  if (!differing && failure) raise(*failure);  // all have the same
  if (!differing) return;
  if (differing->at_one_place()) raise_first_failure(*differing, place);
  const auto told = [&](std::size_t rank) {
    const auto failed = CarriedError::parse(differing->texts[rank]);
    return members_.number_of_rank(rank) + " is at " + differing->places[rank] + " (" +
           (failed ? failed->why() : Message(differing->texts[rank])) + ")";
  };
  raise(CarriedError(LogicError("the ranks disagree: " + told(0) + ", " + told(differing->other()))));
}

/// What is agreed all ranks have met already: that is thrown.
void Agreement::run(const std::function<void()>& work) {
  std::string mine;
  try {
    work();
  } catch (const Error& error) {
    if (error.agreed()) throw;
    mine = CarriedError::current({}).text();
  } catch (...) {
    mine = CarriedError::current({}).text();
  }
  const auto differing = compare(end_of_phase, mine);
  if (differing) require_one_place(*differing);                         // throws the first failure
  if (const auto failure = CarriedError::parse(mine)) raise(*failure);  // all met the same: no rank is to be named
}

void Agreement::require_equal(const Message& what, std::string_view text) {
  const auto differing = compare(what.text(), text);
  if (!differing) return;
  require_one_place(*differing);
  const std::size_t other = differing->other();
  raise(CarriedError(InputError(what + " of " + members_.name_of_rank(0) + " and " + members_.name_of_rank(other) +
                                " differ: " + first_difference(differing->texts[0], differing->texts[other]))));
}

/// Where a rank is at another place because it failed and came to the end of its work, that is what is to be told.
void Agreement::require_one_place(const Differing& differing) const {
  raise_first_failure(differing, end_of_phase);
  if (differing.at_one_place()) return;
  std::size_t other = 0;
  while (differing.places[other] == differing.places[0]) ++other;
  raise(CarriedError(Error("the ranks are at different places of the program: " + members_.name_of_rank(0) + " at " +
                           differing.places[0] + ", " + members_.name_of_rank(other) + " at " +
                           differing.places[other])));
}

}  // namespace ronda
