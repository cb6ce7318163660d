#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/data/dataset.hpp>

#include "../saved_model.hpp"

namespace ronda::apps {

/// Samples of one or more files, as a model takes them.
struct Samples {
  std::vector<std::unique_ptr<const Dataset>> owned;
  /// Of a model that gives outputs of each step: which step of a sample counts. Empty: it gives one row a sample.
  std::vector<std::size_t> steps;

  [[nodiscard]] const Dataset& data() const { return *owned.back(); }  ///< the last, which reads the others
  /// What is said of a sample.
  /// @param outputs  of the model for it
  [[nodiscard]] std::span<const float> row(std::size_t sample, std::span<const float> outputs,
                                           std::size_t width) const {
    return steps.empty() ? outputs : outputs.subspan(steps[sample] * width, width);
  }
};

/// What to predict: files, sorted into parts that are opened one after the other.
class Inputs {
 public:
  /// Sees what the files are. Throws InputError for one that cannot be read, or is none that the model takes.
  Inputs(const SavedModel& model, std::vector<std::filesystem::path> files);

  [[nodiscard]] std::size_t parts() const noexcept { return parts_.size(); }
  /// Throws InputError where a file is damaged, or its samples are not of the model's size.
  [[nodiscard]] Samples open(std::size_t part) const;
  /// The file of a part's sample, and its number there.
  [[nodiscard]] std::string file(std::size_t part, std::size_t sample) const;
  [[nodiscard]] std::size_t number(std::size_t part, std::size_t sample) const;

 private:
  enum class Kind : std::uint8_t { pictures, idx, cifar, table, text, bytes };
  struct Part {
    Kind kind;
    std::vector<std::filesystem::path> files;  ///< one; of pictures any number
  };

  [[nodiscard]] Kind kind_of(const std::filesystem::path& file) const;
  [[nodiscard]] Kind picture_kind_of(const std::filesystem::path& file) const;

  const SavedModel& model_;
  std::vector<Part> parts_;
};

}  // namespace ronda::apps
