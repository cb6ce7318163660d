#pragma once
#include <functional>
#include <string>
#include <vector>

#include <ronda/layers/cudnn/library.hpp>

namespace ronda::cudnn {

/// Ways to compute one thing, each with a number of engines, of which the picker chooses one. Every way has
/// `engines_tried` places in the list, whether it fills them or not, so that the lists of all ranks are equally long.
///
/// Each is run once when it is added: what a library suggests fails now and then, on a new kind of GPU above all. One
/// that does leaves its place empty.
class Choice {
 public:
  /// @param stream  where they are timed
  explicit Choice(Stream& stream) : stream_(&stream) {}

  /// @param run  launches it once with its engine `i`, on memory of the rehearsal
  void add_way(const std::string& name, std::size_t engines, const std::function<std::string(std::size_t)>& engine_name,
               const std::function<void(std::size_t)>& run);
  /// Whether a candidate of this name can run.
  [[nodiscard]] bool has(std::string_view name) const;
  /// The engine in the name of a candidate of this way; empty where it is of another.
  [[nodiscard]] static std::string_view engine_of(std::string_view candidate, std::string_view way) noexcept;

  struct Picked {
    std::size_t way, engine;
    std::string name;
  };
  /// Throws DeviceError, with the remedy, where nothing can run: `why_none`, and how the last one failed.
  Picked pick(Picker& picker, const std::string& question, const std::string& why_none, const EngineRules& rules) const;

 private:
  Stream* stream_;
  std::vector<Candidate> candidates_;
  std::string failure_;
};

}  // namespace ronda::cudnn
