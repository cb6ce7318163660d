// Holds an allreduce against small integers, of which every type (and bf16 and fp16 on the wire) has the sums of few
// ranks and the products of some exactly.
#include "allreduce_bench/exactness.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include <ronda/collectives/compression.hpp>
#include <ronda/collectives/host/algorithms/allreduce_row.hpp>
#include <ronda/core/dtype.hpp>

namespace ronda::apps {
namespace {

/// A T of some arithmetic type, or one of the 16-bit types.
template <class T>
T number(double value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return to_half<T>(static_cast<float>(value));
}
template <class T>
double value_of(T number) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(number);
  else
    return to_float(number);
}

double apply(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::minimum: return std::min(a, b);
    case ReduceOp::maximum: return std::max(a, b);
    case ReduceOp::product: return a * b;
    default: return a + b;
  }
}

/// A question to `ranks` ranks, and its answer.
struct Question {
  ReduceOp op;
  Compression compression;
  int ranks;
  int roundings;  ///< of a compressed number, at most

  /// What a rank has of element `i`.
  [[nodiscard]] double part(std::size_t i, int rank) const {
    const std::size_t mixed = i + static_cast<std::size_t>(rank);
    if (op == ReduceOp::product) return rank < 6 && mixed % 2 == 1 ? 2 : 1;
    return static_cast<double>(mixed % (static_cast<std::size_t>(largest()) + 1));
  }

  [[nodiscard]] double largest() const { return ranks <= 7 ? 16 : 1; }

  /// What rounding a number as it is kept or sent may change of it at most, as a part of it.
  template <class T>
  [[nodiscard]] double rounding() const {
    const bool bf16 = std::is_same_v<T, BFloat16> || compression == Compression::bf16;
    const bool fp16 = std::is_same_v<T, Float16> || compression == Compression::fp16;
    return bf16 ? 0x1p-8 : fp16 ? 0x1p-11 : std::is_same_v<T, double> ? 0x1p-53 : 0x1p-24;
  }

  /// What it is to be.
  [[nodiscard]] double result(std::size_t i) const {
    double result = part(i, 0);
    for (int rank = 1; rank < ranks; ++rank) result = apply(op, result, part(i, rank));
    return op == ReduceOp::mean ? result / ranks : result;
  }

  template <class T>
  [[nodiscard]] bool accepts(T answer, double result) const {
    // With error feedback it may be off by a loss for each rank's part in every rounding. Of 2bit that is as much as
    // the result: it is looked at for what is not finite alone.
    const double steps = roundings * (op == ReduceOp::mean ? 1 : ranks) * largest() * largest_loss(compression);
    if (keeps_lost(compression) && std::abs(value_of(answer) - result) <= steps) return true;
    // A mean is no whole number: it is rounded once by its type, and once by what is sent.
    if (op == ReduceOp::mean && !std::is_integral_v<T>)
      return std::abs(value_of(answer) - result) <= 2 * rounding<T>() * std::abs(result);
    return answer == number<T>(result);
  }
};

template <class T>
std::size_t count_wrong_of(Communicator& communicator, std::span<T> data, const Question& question,
                           const std::function<void()>& allreduce) {
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = number<T>(question.part(i, communicator.rank()));
  allreduce();
  double wrong = 0;
  for (std::size_t i = 0; i < data.size(); ++i) wrong += question.accepts(data[i], question.result(i)) ? 0 : 1;
  std::fill(data.begin(), data.end(), T{});  // which no number of sums makes infinite
  communicator.allreduce(Tensor(std::span(&wrong, 1)));
  return static_cast<std::size_t>(wrong);
}

}  // namespace

std::size_t count_wrong(Communicator communicator, const Tensor& data, ReduceOp op, Compression compression,
                        std::string_view algorithm, const std::function<void()>& allreduce) {
  const AllreduceRow* const row = find_row(parse_allreduce(algorithm));
  const int roundings = row == nullptr || !row->compresses() ? 0 : row->roundings(communicator.size());
  const Question question{op, compression, communicator.size(), roundings};
  const auto of = [&]<class T>(T) { return count_wrong_of(communicator, data.as<T>(), question, allreduce); };
  switch (data.dtype()) {
    case DType::float32: return of(float{});
    case DType::float64: return of(double{});
    case DType::float16: return of(Float16{});
    case DType::bfloat16: return of(BFloat16{});
    case DType::int8: return of(std::int8_t{});
    case DType::uint8: return of(std::uint8_t{});
    case DType::int32: return of(std::int32_t{});
    case DType::int64: return of(std::int64_t{});
  }
  return 0;
}

}  // namespace ronda::apps
