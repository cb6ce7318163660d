#pragma once
#include <memory>
#include <string>

#include <ronda/core/text.hpp>
#include <ronda/data/mixup.hpp>
#include <ronda/layers/losses.hpp>

#include "command_line.hpp"

namespace ronda::apps {

/// --label-smoothing, of applications that tell classes apart.
class LabelSmoothing {
 public:
  /// @param share  the default
  explicit LabelSmoothing(CommandLine& command_line, double share = 0);
  LabelSmoothing(const LabelSmoothing&) = delete;  // the command line writes into it

  [[nodiscard]] SoftmaxCrossEntropy loss() const { return SoftmaxCrossEntropy(share_); }
  /// For TrainingOptions::variant.
  [[nodiscard]] std::string text() const {
    TextWriter text;
    text << "label smoothing " << share_;
    return text.str();
  }

 private:
  double share_;
};

/// --mixup, of applications that tell pictures apart.
class Mixup {
 public:
  explicit Mixup(CommandLine& command_line);
  Mixup(const Mixup&) = delete;  // the command line writes into it

  /// Null where nothing is to be mixed. Of test data too: its samples stay as they are, with targets like the
  /// training's.
  /// @param data  outlives what is returned
  [[nodiscard]] std::unique_ptr<const Dataset> of(const Dataset& data, std::int64_t classes) const {
    return alpha_ > 0 ? std::make_unique<MixupDataset>(data, alpha_, classes) : nullptr;
  }
  /// For TrainingOptions::variant; empty where nothing is mixed.
  [[nodiscard]] std::string text() const {
    TextWriter text;
    if (alpha_ > 0) text << ", mixup " << alpha_;
    return text.str();
  }

 private:
  double alpha_ = 0;
};

}  // namespace ronda::apps
