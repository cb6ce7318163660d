#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include <ronda/core/error.hpp>

namespace ronda {

/// A label that is not the index of a class. Trainer adds the sample to the message.
class LabelError : public InputError {
 public:
  LabelError(std::int32_t label, std::size_t classes)
      : InputError("a label of " + std::to_string(label) + " among " + std::to_string(classes) +
                   " classes: labels count from 0, so the largest is " + std::to_string(classes - 1)),
        label_(label) {}

  [[nodiscard]] std::int32_t label() const noexcept { return label_; }

 private:
  std::int32_t label_;
};

}  // namespace ronda
