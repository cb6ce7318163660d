#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
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

/// Functions of the difference d = x − y of an output and its target, with their derivatives, one struct each.
namespace difference {

[[nodiscard]] inline float sign(float d) { return d > 0 ? 1.0F : d < 0 ? -1.0F : d; }  // NaN for NaN

struct Squared {
  static constexpr std::string_view name = "mean squared error";
  static constexpr int degree = 2;  ///< power of the targets' unit in the loss: see MeanSquaredError
  [[nodiscard]] static double value(double d) { return d * d; }
  [[nodiscard]] static float gradient(float d) { return 2 * d; }
};

struct Absolute {
  static constexpr std::string_view name = "L1 loss";
  static constexpr int degree = 1;
  [[nodiscard]] static double value(double d) { return std::abs(d); }
  [[nodiscard]] static float gradient(float d) { return sign(d); }
};

struct Huber {
  static constexpr std::string_view name = "Huber loss";
  static constexpr int degree = 2;
  double delta;
  [[nodiscard]] double value(double d) const {
    const double distance = std::abs(d);
    return distance <= delta ? 0.5 * d * d : delta * (distance - 0.5 * delta);
  }
  [[nodiscard]] float gradient(float d) const {
    const auto bound = static_cast<float>(delta);
    return std::abs(d) <= bound ? d : bound * sign(d);
  }
};

struct SmoothAbsolute {
  static constexpr std::string_view name = "smooth L1 loss";
  static constexpr int degree = 1;
  double beta;
  [[nodiscard]] double value(double d) const {
    const double distance = std::abs(d);
    return distance < beta ? 0.5 * d * d / beta : distance - 0.5 * beta;
  }
  [[nodiscard]] float gradient(float d) const {
    const auto bound = static_cast<float>(beta);
    return std::abs(d) < bound ? d / bound : sign(d);
  }
};

/// `bound`; throws InputError, which begins with `what`, if it is not `sound` or not finite.
[[nodiscard]] double checked(double bound, bool sound, const char* what);
/// Throws InputError if the unit of a loss is not above 0.
void check_unit(double unit, std::string_view loss);

/// Adapts one of these structs to a function of output and target.
template <class Row>
class Of {
 public:
  static constexpr std::string_view name = Row::name;
  [[nodiscard]] static Metric metric() { return {"mae", false}; }

  Of(Row row, double unit) : row_(row), unit_(unit), scale_(std::pow(unit, Row::degree)) { check_unit(unit, name); }
  [[nodiscard]] double value(double x, double y, std::size_t) const { return scale_ * row_.value(x - y); }
  [[nodiscard]] float gradient(float x, float y, std::size_t) const { return row_.gradient(x - y); }
  [[nodiscard]] double measure(double x, double y) const { return unit_ * std::abs(x - y); }

 private:
  Row row_;
  double unit_, scale_;
};

}  // namespace difference

/// The mean of (x − y)² over the outputs of a sample: PyTorch's MSELoss. For all losses here, outputs are float32 (N,
/// …), targets are float32 of the same shape, or (N) for outputs (N, 1), the metric is `mae`, the mean of |x − y|, and
/// the computation is on the processor.
class MeanSquaredError final : public ElementwiseLoss<difference::Of<difference::Squared>> {
 public:
  /// @param unit  the original size of 1 in scaled outputs and targets. Losses and metrics are in the original unit
  ///              (this loss times unit², a loss of degree 1 times unit), gradients are those of the scaled numbers.
  /// Throws InputError unless `unit` is above 0.
  explicit MeanSquaredError(double unit = 1) : ElementwiseLoss({{}, unit}) {}
};

/// The mean of |x − y|: PyTorch's L1Loss. The gradient is 0 where x = y.
class L1Loss final : public ElementwiseLoss<difference::Of<difference::Absolute>> {
 public:
  /// @param unit  see MeanSquaredError
  explicit L1Loss(double unit = 1) : ElementwiseLoss({{}, unit}) {}
};

/// The mean of (x − y)² / 2 where |x − y| ≤ δ, and of δ (|x − y| − δ/2) elsewhere: PyTorch's HuberLoss (Huber, "Robust
/// estimation of a location parameter", 1964).
class HuberLoss final : public ElementwiseLoss<difference::Of<difference::Huber>> {
 public:
  /// @param delta  above 0, otherwise InputError; for scaled numbers
  /// @param unit   see MeanSquaredError
  explicit HuberLoss(double delta = 1, double unit = 1)
      : ElementwiseLoss({{difference::checked(delta, delta > 0, "the delta of a Huber loss is above 0")}, unit}) {}
};

/// The mean of (x − y)² / 2β where |x − y| < β, and of |x − y| − β/2 elsewhere: PyTorch's SmoothL1Loss, which is its
/// HuberLoss divided by β; with β = 0 its L1Loss.
class SmoothL1Loss final : public ElementwiseLoss<difference::Of<difference::SmoothAbsolute>> {
 public:
  /// @param beta  at least 0, otherwise InputError; for scaled numbers
  /// @param unit  see MeanSquaredError
  explicit SmoothL1Loss(double beta = 1, double unit = 1)
      : ElementwiseLoss({{difference::checked(beta, beta >= 0, "the beta of a smooth L1 loss is at least 0")}, unit}) {}
};

/// Options with PyTorch's names and defaults.
struct CrossEntropyOptions {
  std::vector<float> weight = {};    ///< weight of each class, at least 0; empty: 1 each
  std::int32_t ignore_index = -100;  ///< label of rows that do not count
  double label_smoothing = 0;        ///< in [0, 1)
};

/// −log softmax(x)[label]: PyTorch's CrossEntropyLoss, with the classes as the last axis. Outputs are (N, classes) with
/// labels int32 (N); or (N, T, classes) with labels (N, T), as in a language model; or with more axes, likewise.
/// Computed in float32. With label smoothing ε the target is ε/classes for each class, plus 1−ε for the label (Szegedy
/// et al., CVPR 2016). Exponentials are of x − max(x), so that finite inputs cannot overflow; sums over rows are
/// float64.
///
/// Targets may also be probabilities, float32 of the outputs' shape, as with mixup: −Σ t_c log softmax(x)_c, only on
/// the processor. Each row then has the weight of its sample, and the accuracy uses the class with the highest
/// probability.
///
/// The mean is over rows, each with the weight of its sample times that of its label's class; a row whose label is
/// `ignore_index` has weight 0. This is PyTorch's weighted mean, taken over all ranks: the sum of the weighted losses
/// divided by the sum of the weights.
class SoftmaxCrossEntropy final : public Loss {
 public:
  /// Throws InputError if `label_smoothing` is not in [0, 1), or a weight is below 0.
  explicit SoftmaxCrossEntropy(double label_smoothing = 0);
  explicit SoftmaxCrossEntropy(CrossEntropyOptions options);

  /// False with class weights: these run only on the processor.
  [[nodiscard]] bool runs_on_any_device() const noexcept override { return spec_.weights.empty(); }
  /// The share of rows whose largest output is that of the label, weighted as in the loss.
  [[nodiscard]] Metric metric() const override { return {"accuracy", true}; }
  /// Throws InputError for outputs with fewer than two axes, or a number of classes other than that of the weights. Its
  /// `run` throws InputError for targets that are neither labels nor probabilities, and for a label outside [0,
  /// classes) in a row that counts; on a GPU, such a label makes the loss NaN instead.
  [[nodiscard]] std::unique_ptr<LossOperation> make(const TensorDesc& outputs, Primitives& primitives) const override;

 private:
  CrossEntropySpec spec_;
};

/// −p·y·log σ(x) − (1 − y)·log(1 − σ(x)) of an output x and its target y, where p is the weight of positive targets.
class BinaryCrossEntropy {
 public:
  static constexpr std::string_view name = "BCE with logits";
  [[nodiscard]] static Metric metric() { return {"accuracy", true}; }

  /// @param positive  one weight, or one per element of the last axis; empty: 1
  explicit BinaryCrossEntropy(std::vector<float> positive);
  void check(const Shape& outputs) const;

  /// Computed from exponentials of −|x|, which cannot overflow.
  [[nodiscard]] double value(double x, double y, std::size_t column) const;
  [[nodiscard]] float gradient(float x, float y, std::size_t column) const;
  /// 1 if σ(x) and y are on the same side of a half, otherwise 0; 0 for NaN.
  [[nodiscard]] double measure(double x, double y) const { return (x > 0) == (y > 0.5) && x == x && y == y ? 1 : 0; }

 private:
  [[nodiscard]] float positive(std::size_t column) const {
    return positive_.empty() ? 1.0F : positive_[column % positive_.size()];
  }

  std::vector<float> positive_;
};

/// Binary cross entropy of logits, for one or more binary labels per sample: PyTorch's BCEWithLogitsLoss. Outputs are
/// float32 (N, …), targets in [0, 1], float32 of the same shape, or (N) for outputs (N, 1); the mean is over all
/// outputs. Its metric is the accuracy: the share of outputs with σ(x) on the same side of a half as the target. On the
/// processor.
class BCEWithLogitsLoss final : public ElementwiseLoss<BinaryCrossEntropy> {
 public:
  /// @param pos_weight  weight of positive targets: one number, or one per element of the last axis; empty: 1.
  /// Throws InputError for numbers below 0; `make` throws it for another count.
  explicit BCEWithLogitsLoss(std::vector<float> pos_weight = {});
};

}  // namespace ronda
