#pragma once
#include <string>

#include <ronda/core/text.hpp>
#include <ronda/layers/classification_losses.hpp>

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

}  // namespace ronda::apps
