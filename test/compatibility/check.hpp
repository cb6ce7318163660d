#pragma once
#include <ronda/ronda.hpp>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace compatibility {

/// Throws if Ronda does not do what the program relies on.
inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error("expected " + what);
}

/// Points on a line; class 1 lies right of the middle. The same on every rank.
inline ronda::MemoryDataset points(std::size_t count) {
  std::vector<float> places;
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < count; ++i) {
    places.push_back(static_cast<float>(i * 37 % 101) / 50 - 1);
    labels.push_back(places.back() > 0 ? 1 : 0);
  }
  return {places, {1}, labels};
}

/// An empty folder that rank 0 makes, with the same name on all ranks; removed with this object. Collective.
class SharedFolder {
 public:
  explicit SharedFolder(const ronda::World& world) : rank_(world.rank()) {
    if (rank_ == 0) {
      std::string name = (std::filesystem::temp_directory_path() / "ronda_compatibility_XXXXXX").string();
      require(::mkdtemp(name.data()) != nullptr, "a folder");
      path_ = name;
    }
    path_ = world.communicator().broadcast_text(path_.string());
  }
  SharedFolder(const SharedFolder&) = delete;
  ~SharedFolder() {
    std::error_code ignored;
    if (rank_ == 0) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  int rank_;
  std::filesystem::path path_;
};

}  // namespace compatibility
