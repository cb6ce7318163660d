#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/layers/loss.hpp>
#include <ronda/layers/metrics.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <set>
#include <string>
#include <utility>

namespace ronda {
namespace {

void require_word(const std::string& name) {
  const auto may_be_in_one = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '@';
  };
  if (name.empty() || !std::ranges::all_of(name, may_be_in_one))
    throw InputError("a metric is called '" + printable(name) + "'; a name is letters, digits and _ - . @");
}

}  // namespace

std::vector<std::string> checked_names(const Metrics& metrics, const Shape& outputs, const Metric& of_loss) {
  if (printable(of_loss.name) != of_loss.name || of_loss.name.find_first_of("\"\\") != std::string::npos)
    throw InputError("the loss's metric is called '" + printable(of_loss.name) +
                     "'; a name is UTF-8 without quotes, backslashes and control characters");
  std::set<std::string> taken{"loss", of_loss.name};
  std::vector<std::string> names;
  for (const SummedMetric* metric : metrics)
    for (const MetricValue& value : metric->values(std::vector<double>(metric->sums(outputs)))) {
      const std::string& name = value.metric.name;
      require_word(name);
      if (!taken.insert(name).second)
        throw InputError("two metrics are called " + name +
                         (name == of_loss.name ? ", one of them the loss's own" : "") + "; leave one out");
      names.push_back(name);
    }
  return names;
}

namespace {

std::size_t classes_of(const Shape& outputs, const char* who) {
  if (outputs.rank() < 2 || outputs[outputs.rank() - 1] < 1)
    throw InputError(std::string(who) + " takes outputs (N, classes) or (N, …, classes), not " + outputs.text());
  return static_cast<std::size_t>(outputs[outputs.rank() - 1]);
}

std::size_t numbers_of(const Shape& outputs, const char* who) {
  if (outputs.rank() < 2) throw InputError(std::string(who) + " takes outputs (N, …), not " + outputs.text());
  return static_cast<std::size_t>(outputs.without_batch().count());
}

InputError wrong_targets(const char* expected, const Tensor& outputs, const Tensor& targets) {
  return InputError("a metric takes targets " + std::string(expected) + " for outputs " + outputs.desc().text() +
                    ", not " + targets.desc().text());
}

/// body(the row's outputs, its label, its weight) for each row that counts.
template <class Body>
void each_labelled_row(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
                       std::int32_t ignore_index, Body body) {
  const Shape& shape = outputs.shape();
  const std::size_t classes = classes_of(shape, "a metric");
  const Shape labels_shape(std::span(shape.begin(), shape.end() - 1));
  const bool probabilities = targets.dtype() == DType::float32 && targets.shape() == shape;
  if (!probabilities && (targets.dtype() != DType::int32 || targets.shape() != labels_shape))
    throw wrong_targets("int32, one a row, or probabilities", outputs, targets);
  const auto label_of = [&](std::size_t n) {
    if (!probabilities) return targets.as<const std::int32_t>()[n];
    const auto shares = targets.as<const float>().subspan(n * classes, classes);
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    if (!(std::abs(sum - 1) < 1e-3) || std::ranges::any_of(shares, [](float share) { return share < 0; }))
      throw wrong_targets("int32, one a row, or probabilities, whose sum is 1,", outputs, targets);
    return static_cast<std::int32_t>(std::ranges::max_element(shares) - shares.begin());
  };
  const auto x = outputs.as<const float>();
  const std::size_t rows = x.size() / classes;
  const std::size_t rows_of_sample = rows / std::max<std::size_t>(weights.size(), 1);
  for (std::size_t n = 0; n < rows; ++n) {
    const float weight = weights[n / rows_of_sample];
    if (weight == 0) continue;
    const std::int32_t label = label_of(n);
    if (!probabilities && label == ignore_index) continue;
    if (label < 0 || std::cmp_greater_equal(label, classes)) throw LabelError(label, classes);
    body(x.subspan(n * classes, classes), static_cast<std::size_t>(label), double{weight});
  }
}

/// body(output, target, the output's place among the sample's, weight) for each number that counts.
template <class Body>
void each_number(const Tensor& outputs, const Tensor& targets, std::span<const float> weights, Body body) {
  const auto x = outputs.as<const float>();
  const std::size_t columns = numbers_of(outputs.shape(), "a metric");
  if (targets.dtype() != DType::float32 || targets.shape().rank() == 0 || targets.shape()[0] != outputs.shape()[0] ||
      targets.desc().count() != outputs.desc().count())
    throw wrong_targets("float32, one a number,", outputs, targets);
  const auto y = targets.as<const float>();
  for (std::size_t n = 0; n < weights.size(); ++n) {
    if (weights[n] == 0) continue;
    for (std::size_t c = 0; c < columns; ++c)
      body(double{x[n * columns + c]}, double{y[n * columns + c]}, c, double{weights[n]});
  }
}

bool has_nan(std::span<const float> row) {
  return std::ranges::any_of(row, [](float x) { return std::isnan(x); });
}

std::vector<MetricValue> number(const char* name, double value, bool share = false) {
  std::vector<MetricValue> values(1);
  values.front().metric = {name, share};
  values.front().values.assign(1, value);
  return values;
}

/// −log softmax(x)[label], in float64.
double cross_entropy(std::span<const float> x, std::size_t label) {
  const double largest = *std::ranges::max_element(x);
  double sum = 0;
  for (const float each : x) sum += std::exp(each - largest);
  return std::log(sum) - (x[label] - largest);
}

/// To the sum of the weights, and that of the weighted cross entropies.
void add_cross_entropy(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
                       std::int32_t ignore_index, std::span<double> sums) {
  each_labelled_row(outputs, targets, weights, ignore_index,
                    [&](std::span<const float> x, std::size_t label, double weight) {
                      sums[0] += weight;
                      sums[1] += weight * cross_entropy(x, label);
                    });
}

}  // namespace

// ---- top k ----------------------------------------------------------------------------------------------------------

TopKAccuracy::TopKAccuracy(std::int64_t k, std::int32_t ignore_index) : k_(k), ignore_index_(ignore_index) {
  if (k < 1) throw InputError("the k of a top-k accuracy is at least 1, not " + std::to_string(k));
}

std::size_t TopKAccuracy::sums(const Shape& outputs) const {
  classes_of(outputs, "a top-k accuracy");
  return 2;
}

void TopKAccuracy::add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
                       std::span<double> sums) const {
  each_labelled_row(outputs, targets, weights, ignore_index_,
                    [&](std::span<const float> x, std::size_t label, double weight) {
                      std::int64_t larger = 0;
                      for (std::size_t c = 0; c < x.size(); ++c)
                        larger += x[c] > x[label] || (x[c] == x[label] && c < label) ? 1 : 0;
                      sums[0] += weight;
                      if (larger < k_ && !has_nan(x)) sums[1] += weight;
                    });
}

std::vector<MetricValue> TopKAccuracy::values(std::span<const double> sums) const {
  return number(("top" + std::to_string(k_)).c_str(), sums[1] / sums[0], true);
}

// ---- confusion matrix -----------------------------------------------------------------------------------------------

std::size_t ConfusionMatrix::sums(const Shape& outputs) const {
  const std::size_t classes = classes_of(outputs, "a confusion matrix");
  return classes * classes;
}

void ConfusionMatrix::add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
                          std::span<double> sums) const {
  each_labelled_row(outputs, targets, weights, ignore_index_,
                    [&](std::span<const float> x, std::size_t label, double weight) {
                      if (has_nan(x)) return;
                      const auto taken_for = static_cast<std::size_t>(std::ranges::max_element(x) - x.begin());
                      sums[label * x.size() + taken_for] += weight;
                    });
}

std::vector<MetricValue> ConfusionMatrix::values(std::span<const double> sums) const {
  const std::int64_t classes = std::llround(std::sqrt(static_cast<double>(sums.size())));
  std::vector<MetricValue> values(1);
  values.front().metric.name = "confusion_matrix";
  values.front().values.assign(sums.begin(), sums.end());
  values.front().shape = {classes, classes};
  return values;
}

// ---- perplexity -----------------------------------------------------------------------------------------------------

std::size_t Perplexity::sums(const Shape& outputs) const {
  classes_of(outputs, "a perplexity");
  return 2;
}

void Perplexity::add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
                     std::span<double> sums) const {
  add_cross_entropy(outputs, targets, weights, ignore_index_, sums);
}

std::vector<MetricValue> Perplexity::values(std::span<const double> sums) const {
  return number("perplexity", std::exp(sums[1] / sums[0]));
}

std::size_t BitsPerByte::sums(const Shape& outputs) const {
  classes_of(outputs, "bits per byte");
  return 2;
}

void BitsPerByte::add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
                      std::span<double> sums) const {
  add_cross_entropy(outputs, targets, weights, ignore_index_, sums);
}

std::vector<MetricValue> BitsPerByte::values(std::span<const double> sums) const {
  return number("bits_per_byte", sums[1] / sums[0] / std::numbers::ln2);
}

// ---- errors of numbers ----------------------------------------------------------------------------------------------

std::size_t MeanAbsoluteError::sums(const Shape& outputs) const {
  numbers_of(outputs, "a mean absolute error");
  return 2;
}

void MeanAbsoluteError::add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
                            std::span<double> sums) const {
  each_number(outputs, targets, weights, [&](double x, double y, std::size_t, double weight) {
    sums[0] += weight;
    sums[1] += weight * std::abs(x - y);
  });
}

std::vector<MetricValue> MeanAbsoluteError::values(std::span<const double> sums) const {
  return number("mae", unit_ * (sums[1] / sums[0]));
}

std::size_t RootMeanSquaredError::sums(const Shape& outputs) const {
  numbers_of(outputs, "a root mean squared error");
  return 2;
}

void RootMeanSquaredError::add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
                               std::span<double> sums) const {
  each_number(outputs, targets, weights, [&](double x, double y, std::size_t, double weight) {
    sums[0] += weight;
    sums[1] += weight * (x - y) * (x - y);
  });
}

std::vector<MetricValue> RootMeanSquaredError::values(std::span<const double> sums) const {
  return number("rmse", unit_ * std::sqrt(sums[1] / sums[0]));
}

// ---- R² -------------------------------------------------------------------------------------------------------------

namespace {

/// A sum of doubles that is exact, so the same in any order: `count` doubles, one for each so many bits of the terms.
/// Number i holds whole multiples of 2 ^ (bits · (lowest + i)), each term's share being less than one of number i + 1.
/// So 2^29 terms are added without rounding, of one sum or of many that are added number by number. What a term has
/// below the lowest one is cut off.
struct ExactSum {
  static constexpr int bits = 24;
  int lowest;
  std::size_t count;

  void add(std::span<double> numbers, double term) const {
    const auto top = static_cast<int>(count) - 1;
    if (!std::isfinite(term)) numbers[static_cast<std::size_t>(top)] += term;
    while (term != 0 && std::isfinite(term)) {
      const int exponent = std::ilogb(term);
      const int place = (exponent >= 0 ? exponent / bits : -((bits - 1 - exponent) / bits)) - lowest;
      if (place < 0) return;
      const int held = std::min(place, top);
      const double unit = std::ldexp(1.0, bits * (lowest + held)), share = std::trunc(term / unit) * unit;
      numbers[static_cast<std::size_t>(held)] += share;
      term -= share;
    }
  }
};

/// A number of about 106 bits, the sum of two doubles.
class DoubleDouble {
 public:
  void add(double term) {
    const double sum = high_ + term, of_term = sum - high_;
    low_ += (high_ - (sum - of_term)) + (term - of_term);
    high_ = sum;
  }
  void add_product(double a, double b) {
    const double product = a * b;
    add(product);
    add(std::fma(a, b, -product));
  }
  [[nodiscard]] double value() const { return high_ + low_; }

 private:
  double high_ = 0, low_ = 0;
};

/// Of one of a sample's outputs: the sums of weights w, of w · y of targets y, of w · y², and of w times the squared
/// errors, which needs no more than a double. Nothing is cut off of normal float32s y with a w of 1; the largest
/// w · y², 2^286, is within the squares' numbers, which end at 2^312.
constexpr ExactSum of_weights{-4, 7}, of_targets{-9, 17}, of_squares{-14, 27};
constexpr std::size_t targets_at = of_weights.count, squares_at = targets_at + of_targets.count,
                      errors_at = squares_at + of_squares.count, sums_of_r2 = errors_at + 1;

double sum_of(std::span<const double> numbers) {
  DoubleDouble sum;
  for (const double number : numbers) sum.add(number);
  return sum.value();
}

/// Σ w (y − mean)² of such sums: Σ w (y − c)² − (Σ w (y − c))² / Σ w, of a float32 c that is nearly the mean. NaN where
/// it is no more than what rounding leaves of equal targets.
double spread_of_targets(std::span<const double> sums) {
  constexpr double rounding = 1e-27;
  const auto weights = sums.first(targets_at), targets = sums.subspan(targets_at, of_targets.count),
             squares = sums.subspan(squares_at, of_squares.count);
  const double weight = sum_of(weights), center = static_cast<float>(sum_of(targets) / weight);
  DoubleDouble around, distance;
  for (const double number : squares) around.add(number);
  for (const double number : targets) {
    around.add_product(-2 * center, number);
    distance.add(number);
  }
  for (const double number : weights) {
    around.add_product(center * center, number);
    distance.add_product(-center, number);
  }
  const double spread = around.value() - distance.value() * distance.value() / weight;
  return spread > rounding * sum_of(squares) ? spread : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::size_t R2Score::sums(const Shape& outputs) const { return sums_of_r2 * numbers_of(outputs, "an R² score"); }

void R2Score::add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
                  std::span<double> sums) const {
  each_number(outputs, targets, weights, [&](double x, double y, std::size_t column, double weight) {
    const auto sum = sums.subspan(column * sums_of_r2, sums_of_r2);
    const double target = weight * y;  // exact: both are float32
    const double square = target * y;
    of_weights.add(sum, weight);
    of_targets.add(sum.subspan(targets_at), target);
    of_squares.add(sum.subspan(squares_at), square);
    of_squares.add(sum.subspan(squares_at), std::fma(target, y, -square));
    sum[errors_at] += weight * (x - y) * (x - y);
  });
}

std::vector<MetricValue> R2Score::values(std::span<const double> sums) const {
  const std::size_t columns = sums.size() / sums_of_r2;
  double total = 0;
  for (std::size_t c = 0; c < columns; ++c) {
    const auto sum = sums.subspan(c * sums_of_r2, sums_of_r2);
    total += 1 - sum[errors_at] / spread_of_targets(sum);
  }
  return number("r2", total / static_cast<double>(columns));
}

}  // namespace ronda
