#include <ronda/core/error.hpp>
#include <ronda/layers/picker.hpp>

namespace ronda {

std::size_t FirstPicker::pick(std::string_view question, std::span<const Candidate> candidates) {
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].run) return i;
  throw Error("nothing on this machine can do " + std::string(question));
}

}  // namespace ronda
