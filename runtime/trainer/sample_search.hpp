#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <ronda/data/batch_plan.hpp>
#include <ronda/data/dataset.hpp>

namespace ronda {

/// A range of steps of an epoch. Epochs count from 1; 0: samples without random variation, as in tests. Steps count
/// from 0.
struct StepPlace {
  std::uint64_t epoch = 0;
  std::size_t step = 0, steps = 1;
};

/// Checks a row of a batch that has values. Returns the fault as text; empty: none.
using RowFault = std::function<std::string(const Batch& batch, std::size_t row)>;

/// Reads this shard's samples of these steps again. Returns the first that counts and has the fault, by its number from
/// 0 in the whole data: `sample 17 (its target is 10, from labels.npy)`. Empty if no sample has it. For messages: it
/// allocates.
[[nodiscard]] std::string find_sample(const Dataset& data, const SampleOrder& order, const BatchPlan& plan,
                                      const StepPlace& place, const RowFault& fault);

/// Finds a number that is not finite in one of these fields. `fields` must outlive the result.
[[nodiscard]] RowFault nonfinite_field(std::span<const Field> fields);
/// Finds this label in `target`.
[[nodiscard]] RowFault has_label(std::int32_t label);

}  // namespace ronda
