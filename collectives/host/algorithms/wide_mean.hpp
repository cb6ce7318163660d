#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/core/buffer.hpp>

namespace ronda {

/// A mean of integers or of float16, whose sum may not fit their type: another algorithm sums wider numbers, in memory
/// of this object. An integer of up to 32 bits is one int64 there. An int64 is two, quotient and remainder by the
/// number of ranks, so that their sums fit; the mean is rounded towards zero. A float16 is a float32, and the mean is
/// rounded once.
class WideMean final : public Algorithm {
 public:
  [[nodiscard]] static bool suits(ReduceOp op, DType dtype) noexcept {
    return op == ReduceOp::mean && (is_integer(dtype) || dtype == DType::float16);
  }
  /// How many int64 stand for one number of `dtype`.
  [[nodiscard]] static std::size_t words(DType dtype) noexcept { return dtype == DType::int64 ? 2 : 1; }
  [[nodiscard]] static DType wide_type(DType dtype) noexcept {
    return is_integer(dtype) ? DType::int64 : DType::float32;
  }
  [[nodiscard]] static std::size_t wide_bytes(const Elements& data) noexcept {
    return data.count * words(data.dtype) * size_of(wide_type(data.dtype));
  }
  /// The int64 operand that is summed in place of `data`, in `memory` of `wide_bytes(data)`.
  [[nodiscard]] static Elements wide(const Elements& data, const Buffer& memory) noexcept {
    return {memory.data(), data.count * words(data.dtype), wide_type(data.dtype)};
  }

  /// @param data    outlives this object
  /// @param memory  holds `sum`'s operand, `wide(data, memory)`
  WideMean(const Elements& data, int ranks, Buffer memory, std::unique_ptr<Algorithm> sum)
      : data_(data), ranks_(ranks), memory_(std::move(memory)), sum_(std::move(sum)) {}

  Task run() override {
    widen();
    co_await sum_->run();
    narrow();
  }
  void visit_traffic(const std::function<void(Traffic&)>& visit) override { sum_->visit_traffic(visit); }
  void prepare() override {
    Algorithm::prepare();
    sum_->prepare();
  }
  [[nodiscard]] bool in_order() const noexcept override { return sum_->in_order(); }
  [[nodiscard]] std::size_t memory() const noexcept override { return memory_.bytes() + sum_->memory(); }
  [[nodiscard]] std::uint64_t sent_bytes() const noexcept override { return sum_->sent_bytes(); }

 private:
  void widen() const;
  void narrow() const;

  Elements data_;
  int ranks_;
  Buffer memory_;
  std::unique_ptr<Algorithm> sum_;
};

/// The algorithm from `make` for these numbers and this reduction; for a mean of integers, a WideMean around the one
/// from `make` for the int64 sum.
/// @param make  std::unique_ptr<Algorithm>(const Elements&, const Reduction&)
template <class Make>
[[nodiscard]] std::unique_ptr<Algorithm> with_wide_mean(const Elements& data, const Reduction& reduction,
                                                        const Make& make) {
  if (!WideMean::suits(reduction.op, data.dtype)) return make(data, reduction);
  Buffer memory = Buffer::host(WideMean::wide_bytes(data));
  auto sum = make(WideMean::wide(data, memory), Reduction{ReduceOp::sum, reduction.ranks});
  return std::make_unique<WideMean>(data, reduction.ranks, std::move(memory), std::move(sum));
}

}  // namespace ronda
