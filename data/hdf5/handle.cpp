#include <ronda/data/hdf5/handle.hpp>

namespace ronda::hdf5 {

std::unique_lock<std::mutex> lock() {
  static std::mutex mutex;
  return std::unique_lock(mutex);
}

std::string last_error() {
  std::string text = "no reason";
  const auto keep = [](unsigned, const H5E_error2_t* error, void* kept) -> herr_t {
    if (error->desc != nullptr) *static_cast<std::string*>(kept) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep, &text);  // the last one is where it began
  return text;
}

}  // namespace ronda::hdf5
