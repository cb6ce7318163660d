#pragma once
#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "../saved_model.hpp"

namespace ronda::apps {

enum class PredictionFormat : std::uint8_t { json, csv };

/// Writes what a model says of samples, one line each.
class PredictionWriter {
 public:
  /// @param top  how many classes to name, the likeliest first; of a model that gives numbers it has no meaning
  PredictionWriter(const SavedModel& model, PredictionFormat format, std::size_t top, std::ostream& out);

  /// @param outputs  of the model for this sample. Throws InputError where they are not finite.
  void write(const std::string& file, std::size_t sample, std::span<const float> outputs);

 private:
  struct Choice {
    std::size_t label;
    double probability;
  };

  [[nodiscard]] std::vector<Choice> likeliest(std::span<const float> outputs) const;
  void write_classes(const std::string& file, std::size_t sample, const std::vector<Choice>& choices);
  void write_number(const std::string& file, std::size_t sample, double number);

  const SavedModel& model_;
  PredictionFormat format_;
  std::size_t top_;
  std::ostream& out_;
};

}  // namespace ronda::apps
