#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/random.hpp>
#include <ronda/layers/operation.hpp>

#include "support/catch.hpp"

namespace ronda::test {

// What the tests share that hold a library's operations against the plain loops.

/// Random numbers by index, between -scale and scale.
inline std::vector<float> random_numbers(std::int64_t count, std::uint64_t stream, float scale) {
  const RngKey key(7, Purpose::test, stream);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = scale * (2 * key.uniform(i) - 1);
  return values;
}

/// Takes candidate `wanted` of every question where it can run, otherwise the first that can; tries all for timing
/// once.
class ForcingPicker final : public Picker {
 public:
  explicit ForcingPicker(std::size_t wanted) : wanted_(wanted) {}
  std::size_t pick(std::string_view question, std::span<const Candidate> candidates) override {
    most_ = std::max(most_, candidates.size());
    std::optional<std::size_t> chosen;
    const std::size_t wanted = std::min(wanted_, candidates.size() - 1);
    for (std::size_t i = candidates.size(); i-- > 0;) {
      if (!candidates[i].run) continue;
      candidates[i].run();
      if (chosen != wanted) chosen = i;
    }
    if (!chosen) FAIL("nothing can run: " << question);
    return *chosen;
  }
  [[nodiscard]] std::size_t most() const { return most_; }

 private:
  std::size_t wanted_, most_ = 0;
};

/// Takes any candidate that can run, another one for each question, drawn by `seed`; tries all for timing once.
class MixingPicker final : public Picker {
 public:
  explicit MixingPicker(std::uint64_t seed) : key_(7, Purpose::test, seed) {}
  std::size_t pick(std::string_view question, std::span<const Candidate> candidates) override {
    std::vector<std::size_t> able;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (!candidates[i].run) continue;
      candidates[i].run();
      able.push_back(i);
    }
    if (able.empty()) FAIL("nothing can run: " << question);
    return able[key_.below(able.size(), asked_++)];
  }

 private:
  RngKey key_;
  std::uint64_t asked_ = 0;
};

/// Against the largest element, or `scale` if that is more: sums cancel.
inline void check_close(const std::string& what, const std::vector<float>& found, const std::vector<float>& expected,
                        float tolerance, float scale = 1) {
  REQUIRE(found.size() == expected.size());
  float worst = 0;
  for (const float e : expected) scale = std::max(scale, std::abs(e));
  for (std::size_t i = 0; i < found.size(); ++i) {
    const float error = std::abs(found[i] - expected[i]);
    worst = error <= worst ? worst : error;  // and NaN
  }
  INFO(what << ": worst error " << worst << " of " << scale);
  CHECK(worst <= tolerance * scale);
}

}  // namespace ronda::test
