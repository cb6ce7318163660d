#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/dataset.hpp>
#include <ronda/data/transform.hpp>

#include "../progress.hpp"

namespace ronda::apps {

/// Data as the command line names it.
struct DataPlace {
  std::string format;  ///< a name of data_formats
  std::filesystem::path path;
  std::string part = "train";  ///< or test: of formats that have both
  std::int64_t size = 224;     ///< of a folder of pictures: height and width of what is made of them
  std::size_t readers = 0;     ///< of a folder of pictures: threads that decode; 0: one a processor
  std::string target;          ///< of a table: the column to predict; empty: the last
  std::vector<std::string> ignore;
  char separator = ',';
};

/// Data that was opened, with what it reads from.
struct OpenData {
  std::vector<std::shared_ptr<const void>> owned;
  const Dataset* data = nullptr;
  bool bytes = false;  ///< inputs are bytes / 255
  std::vector<std::string> classes;
  std::string remark = {};  ///< names data that is left out; empty: none
};

struct Checked {
  std::size_t samples = 0;  ///< or files
  std::string remark = {};  ///< names undamaged data that is left out; empty: none
};

using Tell = std::function<void(const InputError&)>;

/// A format of ronda_data; a null function: not supported.
struct DataFormat {
  std::string name;
  std::string help;
  /// Reads all data and reports every damage.
  std::function<Checked(const DataPlace&, const Tell&, Progress&)> check;
  /// @param vary  random parts of pictures, as a training has them
  std::function<OpenData(const DataPlace&, bool vary)> open;
  /// What the applications do to these images in a training, before they normalise them.
  std::function<std::vector<Transform>()> augmentation;
  std::function<Transform()> normalization;
};

[[nodiscard]] const std::vector<DataFormat>& data_formats();
/// Throws InputError that lists the names.
[[nodiscard]] const DataFormat& data_format(const std::string& name);

}  // namespace ronda::apps
