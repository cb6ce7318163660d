#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/layers/loss.hpp>

namespace ronda {

/// A loss that compares each output with its target; a sample's loss is the mean over its outputs. Outputs are float32
/// (N, …), targets float32 of the same shape; targets may omit a last axis of extent 1. On the processor.
///
/// Each such loss is defined by a function of one output x and its target y:
///
///     struct LogCosh {
///       static constexpr std::string_view name = "log-cosh";                     // for errors
///       static Metric metric() { return {"mae", false}; }
///       double value(double x, double y, std::size_t) const { return std::log(std::cosh(x - y)); }
///       float gradient(float x, float y, std::size_t) const { return std::tanh(x - y); }  // of the value, by x
///       double measure(double x, double y) const { return std::abs(x - y); }     // the metric; its mean is shown
///     };
///     ElementwiseLoss<LogCosh> loss;
///
/// The third argument is the index of the output in its sample. NaN must give NaN. A function that does not support all
/// shapes of outputs has a member `check(const Shape& outputs)` that throws InputError.
template <class Function>
class ElementwiseLoss : public Loss {
 public:
  explicit ElementwiseLoss(Function function = {}) : function_(std::move(function)) {}

  [[nodiscard]] Metric metric() const override { return Function::metric(); }
  /// Throws InputError for outputs that are not float32 (N, …), and its `run` for targets of another type or shape.
  [[nodiscard]] std::unique_ptr<LossOperation> make(const TensorDesc& outputs, Primitives&) const override {
    if (outputs.shape.rank() < 2 || outputs.dtype != DType::float32)
      throw InputError(std::string(Function::name) + " takes outputs float32 (N, …), not " + outputs.text());
    if constexpr (requires { function_.check(outputs.shape); }) function_.check(outputs.shape);
    return std::make_unique<Loops>(outputs.shape, function_);
  }

 private:
  class Loops;
  Function function_;
};

template <class Function>
class ElementwiseLoss<Function>::Loops final : public LossOperation {
 public:
  Loops(const Shape& outputs, const Function& function)
      : outputs_(outputs),
        rows_(static_cast<std::size_t>(outputs[0])),
        columns_(static_cast<std::size_t>(outputs.without_batch().count())),
        function_(function) {}

  [[nodiscard]] std::size_t scratch_bytes() const noexcept override { return bytes_of_row_sums(rows_); }

  void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte* scratch,
           const Pass& pass) override {
    check(target);
    const auto x = outputs.as<const float>(), y = target.as<const float>(), weights = pass.weights->as<const float>();
    const auto dx = gradient.as<float>();
    const float scale = pass.loss_scale / static_cast<float>(columns_);
    add_rows(rows_, columns_, scratch, pass, [&](std::size_t n) -> RowSums {
      const auto outputs_of_row = x.subspan(n * columns_, columns_), targets = y.subspan(n * columns_, columns_);
      const auto gradients = dx.subspan(n * columns_, columns_);
      if (weights[n] == 0) return std::ranges::fill(gradients, 0.0F), RowSums();  // a padding row may hold anything
      write_gradient(outputs_of_row, targets, gradients, scale * weights[n]);
      return sums(outputs_of_row, targets, weights[n]);
    });
  }

 private:
  void check(const Tensor& target) const {
    std::vector<std::int64_t> extents(outputs_.begin(), outputs_.end());
    bool fits = target.shape() == outputs_;
    if (extents.back() == 1) {
      extents.pop_back();
      fits = fits || target.shape() == Shape(extents);
    }
    if (target.dtype() != DType::float32 || !fits)
      throw InputError(std::string(Function::name) + " takes targets float32 " + outputs_.text() + ", not " +
                       target.desc().text());
  }

  void write_gradient(std::span<const float> x, std::span<const float> y, std::span<float> dx, float factor) const {
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = factor * function_.gradient(x[i], y[i], i);
  }

  /// Uses several independent sums, so that the compiler can vectorise the loop.
  RowSums sums(std::span<const float> x, std::span<const float> y, double weight) const {
    constexpr std::size_t lanes = 8;
    std::array<double, lanes> losses{}, metrics{};
    const auto add = [&](std::size_t lane, std::size_t i) {
      losses[lane] += function_.value(x[i], y[i], i);
      metrics[lane] += function_.measure(x[i], y[i]);
    };
    const std::size_t whole = x.size() / lanes * lanes;
    for (std::size_t i = 0; i < whole; i += lanes)
      for (std::size_t lane = 0; lane < lanes; ++lane) add(lane, i + lane);
    for (std::size_t i = whole; i < x.size(); ++i) add(i - whole, i);
    const double share = weight / static_cast<double>(columns_);
    return {share * sum_of(losses), weight, share * sum_of(metrics)};
  }
  static double sum_of(const std::array<double, 8>& lanes) {
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
  }

  Shape outputs_;
  std::size_t rows_, columns_;
  Function function_;
};

}  // namespace ronda
