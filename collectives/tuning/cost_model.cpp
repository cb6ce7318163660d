#include <ronda/collectives/host/algorithms/allreduce_row.hpp>
#include <ronda/collectives/tuning/cost_model.hpp>

namespace ronda {

std::optional<double> CostModel::seconds(AllreduceAlgorithm algorithm, std::size_t bytes,
                                         Compression compression) const {
  if (times_.ranks() == 1 || bytes == 0) return 0;
  auto seconds = formula(algorithm, static_cast<double>(bytes), times_.packed(compression));
  if (!seconds || !uses_trials_) return seconds;
  for (const Trial& trial : times_.costs().trials)
    if (trial.algorithm == algorithm && trial.compression == compression && trial.bytes == bytes)
      *seconds *= trial.factor;
  return seconds;
}

std::size_t CostModel::trial_bytes(std::size_t bytes) const {
  constexpr double too_long = 0.06;
  constexpr std::size_t too_much = std::size_t{4} << 20;  // memory: it is taken once more for the trial
  std::size_t size = 1;
  while (size <= bytes / 4 && size < too_much) size *= 4;
  const auto takes = [&](std::size_t some) {
    return formula(AllreduceAlgorithm::ring, static_cast<double>(some), {}).value_or(0);
  };
  while (size > 1 && takes(size) > too_long) size /= 4;
  return size;
}

std::optional<double> CostModel::formula(AllreduceAlgorithm algorithm, double bytes,
                                         const MessageTimes::Packed& packed) const {
  const AllreduceRow* const row = find_row(algorithm);
  if (row == nullptr || row->cost == nullptr) return std::nullopt;
  return row->cost(times_, bytes, packed);
}

}  // namespace ronda
