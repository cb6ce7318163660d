#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <ronda/runtime/trainer/training_options.hpp>

namespace ronda::test {

/// What a strategy does with a feature.
enum class Holds : std::uint8_t {
  bits,      ///< the parameters of `mirrored` with the same feature, bit by bit
  rounding,  ///< the parameters of `mirrored` with the same feature, to rounding
  works,     ///< parameters of the strategy's own, equal on all ranks; the loss falls
  refused,   ///< an error before the first step
};

/// A strategy with options of its own: a column of the table.
struct StrategyColumn {
  std::string_view name;
  void (*choose)(TrainingOptions& options);
};

/// How the test tries a feature.
enum class TrialKind : std::uint8_t {
  images,   ///< trains a small convolutional network with the feature's options
  norms,    ///< the same network with a SyncBatchNorm
  texts,    ///< trains a table of words with sparse gradients
  by_hand,  ///< trains in a loop of its own that calls the parts of a step
  resumed,  ///< saves after some steps, and a second training resumes
  device,   ///< trains on a stand-in for a GPU
};

/// A row of the table.
struct Feature {
  std::string_view name;  ///< as the page has it
  TrialKind trial;
  void (*change)(TrainingOptions& options);
  std::vector<Holds> cells;                    ///< one per column
  std::vector<std::string_view> refusal = {};  ///< what an error says where the feature is refused
};

/// The columns, and the rows that docs/strategies.md shows and conformance_test.cpp tries.
[[nodiscard]] std::span<const StrategyColumn> columns_of_strategies();
[[nodiscard]] std::span<const Feature> rows_of_features();

}  // namespace ronda::test
