#include <ronda/core/error.hpp>
#include <ronda/layers/cudnn/choice.hpp>

#include <algorithm>

namespace ronda::cudnn {

void Choice::add_way(const std::string& name, std::size_t engines,
                     const std::function<std::string(std::size_t)>& engine_name,
                     const std::function<void(std::size_t)>& run) {
  for (std::size_t i = 0; i < engines_tried; ++i) {
    Candidate candidate;
    candidate.name = name + (i < engines ? " " + engine_name(i) : " none " + std::to_string(i));
    const auto run_once = [run, i, stream = stream_] {
      run(i);
      stream->synchronize();
    };
    try {
      if (i < engines) {
        run_once();
        candidate.run = run_once;
      }
    } catch (const DeviceError& error) {  // the GPU's own error comes again with every other candidate, and ends it
      failure_ = candidate.name + ": " + error.what();
    }
    candidates_.push_back(std::move(candidate));
  }
}

bool Choice::has(std::string_view name) const {
  return std::ranges::any_of(candidates_, [&](const Candidate& c) { return c.run && c.name == name; });
}

std::string_view Choice::engine_of(std::string_view candidate, std::string_view way) noexcept {
  const bool fits = candidate.size() > way.size() && candidate.starts_with(way) && candidate[way.size()] == ' ';
  return fits ? candidate.substr(way.size() + 1) : std::string_view();
}

Choice::Picked Choice::pick(Picker& picker, const std::string& question, const std::string& why_none,
                            const EngineRules& rules) const {
  if (std::ranges::none_of(candidates_, [](const Candidate& c) { return static_cast<bool>(c.run); }))
    throw DeviceError(
        "NVIDIA's libraries have nothing for " + question + ": " + why_none +
        (why_none.empty() || failure_.empty() ? "" : "; ") + failure_ +
        (rules.precision == Precision::float32
             ? "; " + setting("precision", "tf32") + " takes engines that are less exact,"
             : "; a newer cuDNN may have one,") +
        (rules.deterministic ? " " + setting("nondeterministic") + " those that add up in any order," : "") + " and " +
        setting("device", "cpu") + " none of them");
  const std::size_t picked = picker.pick(question, candidates_);
  return {picked / engines_tried, picked % engines_tried, candidates_[picked].name};
}

}  // namespace ronda::cudnn
