#pragma once
#include <functional>
#include <string>
#include <vector>

#include <ronda/layers/cudnn/library.hpp>

namespace ronda::cudnn {

/// Ways to compute one thing, each with a number of engines, of which the picker chooses one. Every way has
/// `engines_tried` places in the list, whether it fills them or not, so that the lists of all ranks are equally long.
class Choice {
 public:
  explicit Choice(const Library& library) : library_(library) {}

  /// @param run  launches it once with its engine `i`, on memory of the rehearsal
  void add_way(const std::string& name, std::size_t engines, const std::function<std::string(std::size_t)>& engine_name,
               const std::function<void(std::size_t)>& run);

  struct Picked {
    std::size_t way, engine;
    std::string name;
  };
  /// Throws DeviceError, saying `why_none`, where nothing can run.
  Picked pick(Picker& picker, const std::string& question, const std::string& why_none) const;

 private:
  const Library& library_;
  std::vector<Candidate> candidates_;
};

}  // namespace ronda::cudnn
