#include <ronda/layers/cudnn/choice.hpp>
#include <ronda/runtime/core/error.hpp>

#include <algorithm>

namespace ronda::cudnn {

void Choice::add_way(const std::string& name, std::size_t engines,
                     const std::function<std::string(std::size_t)>& engine_name,
                     const std::function<void(std::size_t)>& run) {
  for (std::size_t i = 0; i < engines_tried; ++i) {
    Candidate candidate;
    candidate.name = name + (i < engines ? " " + engine_name(i) : " none " + std::to_string(i));
    if (i < engines)
      candidate.run = [run, i, &stream = library_.stream()] {
        run(i);
        stream.synchronize();
      };
    candidates_.push_back(std::move(candidate));
  }
}

Choice::Picked Choice::pick(Picker& picker, const std::string& question, const std::string& why_none) const {
  if (std::ranges::none_of(candidates_, [](const Candidate& c) { return static_cast<bool>(c.run); }))
    throw DeviceError("NVIDIA's libraries have nothing for " + question + ": " + why_none);
  const std::size_t picked = picker.pick(question, candidates_);
  return {picked / engines_tried, picked % engines_tried, candidates_[picked].name};
}

}  // namespace ronda::cudnn
