#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/optim/adam.hpp>
#include <ronda/optim/muon.hpp>
#include <ronda/optim/update_loop.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace ronda {
namespace {

constexpr std::size_t tile_rows = 4, tile = 32;  // of a product's part that is summed in registers

[[nodiscard]] std::size_t padded(std::size_t extent) { return (extent + tile - 1) / tile * tile; }

/// result = product_factor · left · right + more_factor · more, row-major; `more` may be `result`, or null.
struct Product {
  const float *left, *right;
  float* result;
  std::size_t inner, columns;
  float product_factor = 1, more_factor = 0;
  const float* more = nullptr;
};

/// Rows [begin, end), whole tiles. Each element is summed along the inner axis.
RONDA_MULTIVERSION void multiply_rows(const Product& p, std::size_t begin, std::size_t end) {
  for (std::size_t column = 0; column < p.columns; column += tile)
    for (std::size_t row = begin; row < end; row += tile_rows) {
      float sums[tile_rows][tile] = {};
      const float* const left = p.left + row * p.inner;
      const float* right = p.right + column;
      for (std::size_t k = 0; k < p.inner; ++k, right += p.columns)
        for (std::size_t r = 0; r < tile_rows; ++r)
          for (std::size_t c = 0; c < tile; ++c) sums[r][c] += left[r * p.inner + k] * right[c];
      for (std::size_t r = 0; r < tile_rows; ++r) {
        const std::size_t at = (row + r) * p.columns + column;
        for (std::size_t c = 0; c < tile; ++c)
          p.result[at + c] =
              p.product_factor * sums[r][c] + (p.more == nullptr ? 0.0F : p.more_factor * p.more[at + c]);
      }
    }
}

void multiply(const Product& product, std::size_t rows, Stream& stream) {
  constexpr std::size_t least_work = 1 << 18;  // multiplications of a thread
  const std::size_t tiles = rows / tile_rows,
                    work = std::max<std::size_t>(tile_rows * product.inner * product.columns, 1);
  parallel_for(
      stream.threads(), tiles,
      [&](Range part) { multiply_rows(product, part.begin * tile_rows, part.end * tile_rows); },
      std::max<std::size_t>(least_work / work, 1));
}

}  // namespace

void NewtonSchulz::reserve(std::size_t rows, std::size_t columns) {
  const std::size_t shorter = padded(std::min(rows, columns)), longer = padded(std::max(rows, columns));
  for (auto* buffer : {&x_, &y_}) buffer->resize(std::max(buffer->size(), shorter * longer));
  for (auto* buffer : {&a_, &b_}) buffer->resize(std::max(buffer->size(), shorter * shorter));
}

void NewtonSchulz::operator()(float* matrix, std::size_t rows, std::size_t columns, double norm, Stream& stream) {
  constexpr float a = 3.4445F, b = -4.775F, c = 2.0315F;
  const bool turned = rows > columns;
  const std::size_t shorter = padded(std::min(rows, columns)), longer = padded(std::max(rows, columns));
  const auto place = [&](std::size_t row, std::size_t column) {
    return turned ? column * longer + row : row * longer + column;
  };
  const auto divisor = static_cast<float>(norm + 1e-7);
  std::fill_n(x_.begin(), shorter * longer, 0.0F);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column)
      x_[place(row, column)] = matrix[row * columns + column] / divisor;
  for (int step = 0; step < 5; ++step) {
    float *x = x_.data(), *y = y_.data();
    for (std::size_t i = 0; i < shorter; ++i)
      for (std::size_t k = 0; k < longer; ++k) y[k * shorter + i] = x[i * longer + k];
    multiply({x, y, a_.data(), longer, shorter}, shorter, stream);
    multiply({a_.data(), a_.data(), b_.data(), shorter, shorter, c, b, a_.data()}, shorter, stream);
    multiply({b_.data(), x, y, shorter, longer, 1, a, x}, shorter, stream);
    std::swap(x_, y_);
  }
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column) matrix[row * columns + column] = x_[place(row, column)];
}

namespace {

/// The elementwise parts of Muon's update of a matrix: before it is made orthogonal, and after.
struct MatrixRule {
  double momentum = 0.95;

  static constexpr std::array<std::string_view, 2> states = Adam::states;
  static constexpr bool needs_norms = true;

  struct Scalars {
    float factor, momentum, one_minus_momentum, keep, rate;
  };
  [[nodiscard]] Scalars scalars(const RuleStep& step) const {
    return {static_cast<float>(step.gradient_factor), static_cast<float>(momentum), static_cast<float>(1 - momentum),
            static_cast<float>(1 - step.learning_rate * step.weight_decay), static_cast<float>(step.learning_rate)};
  }
  RONDA_HOST_DEVICE_INLINE static float propose(const Scalars& s, float, float sum, float& mean, float& update) {
    const float gradient = sum * s.factor;
    mean += s.one_minus_momentum * (gradient - mean);
    return update = gradient + s.momentum * (mean - gradient);
  }
  RONDA_HOST_DEVICE_INLINE static void apply(const Scalars& s, float& value, float, float&, float& update) {
    value = value * s.keep - s.rate * update;
  }
};

RONDA_UPDATE_LOOP(update_matrix, MatrixRule)
RONDA_PROPOSE_LOOP(propose_matrix, MatrixRule)
RONDA_UPDATE_LOOP(update_other, Adam)

class MuonOptimizer final : public Optimizer {
 public:
  MuonOptimizer(const Muon& muon, double weight_decay)
      : Optimizer(weight_decay),
        matrices_{muon.momentum},
        others_{.beta1 = muon.beta1, .beta2 = muon.beta2, .epsilon = muon.epsilon, .decay = Decay::decoupled} {}

  [[nodiscard]] std::string_view name() const noexcept override { return "muon"; }
  [[nodiscard]] std::span<const std::string_view> states() const noexcept override { return Adam::states; }
  [[nodiscard]] bool needs_norms() const noexcept override { return true; }
  [[nodiscard]] bool has_two_passes() const noexcept override { return true; }
  [[nodiscard]] bool on_processor_alone() const noexcept override { return true; }

 private:
  /// Rows and columns of a parameter; none where it is no matrix.
  struct Extents {
    std::size_t rows = 0, columns = 0;
    [[nodiscard]] bool is_matrix() const { return rows > 0 && columns > 0; }
    [[nodiscard]] double scale() const {
      return std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
    }
  };
  static Extents extents_of(const Shape& shape) {
    if ((shape.rank() != 2 && shape.rank() != 4) || shape.count() == 0) return {};
    return {static_cast<std::size_t>(shape[0]), static_cast<std::size_t>(shape.count() / shape[0])};
  }

  void plan(std::span<const ArenaSegment> segments) override {
    extents_.clear();
    std::size_t most = 0;
    for (const ArenaSegment& segment : segments) {
      const Extents extents = extents_.emplace_back(extents_of(segment.desc.shape));
      if (!extents.is_matrix()) continue;
      orthogonalize_.reserve(extents.rows, extents.columns);
      most = std::max(most, extents.rows * extents.columns);
    }
    plain_.resize(most);
    of_matrices_.resize(segments.size());
    of_others_.resize(segments.size());
  }
  void prepare(std::span<const RuleStep> steps) override {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      RuleStep step = steps[i];
      if (extents_[i].is_matrix()) {
        of_matrices_[i] = matrices_.scalars(step);
        of_matrices_[i].rate = static_cast<float>(step.learning_rate * extents_[i].scale());
      } else {
        step.learning_rate *= Muon::adam_share;
        of_others_[i] = others_.scalars(step);
      }
    }
  }
  [[nodiscard]] double propose(const ArenaPart& part, std::size_t parameter) const noexcept override {
    return extents_[parameter].is_matrix() ? propose_matrix(part, of_matrices_[parameter]) : 0;
  }
  void complete(std::size_t parameter, double norm, const Tensor& proposal, Stream& stream) override {
    const Extents& extents = extents_[parameter];
    if (!extents.is_matrix()) return;
    const Tensor plain({proposal.shape(), DType::float32, {}}, plain_.data());
    reorder(proposal, plain);
    orthogonalize_(plain_.data(), extents.rows, extents.columns, norm, stream);
    reorder(plain, proposal);
  }
  [[nodiscard]] bool update(const ArenaPart& part, std::size_t parameter) const noexcept override {
    return extents_[parameter].is_matrix() ? update_matrix(part, of_matrices_[parameter])
                                           : update_other(part, of_others_[parameter]);
  }

  MatrixRule matrices_;
  Adam others_;
  NewtonSchulz orthogonalize_;
  std::vector<float> plain_;  ///< a proposal, row-major
  // By parameter.
  std::vector<Extents> extents_;
  std::vector<MatrixRule::Scalars> of_matrices_;
  std::vector<Adam::Scalars> of_others_;
};

std::unique_ptr<Optimizer> make_muon(const OptimizerOptions& options) {
  const Muon muon{
      .momentum = *options.momentum, .beta1 = *options.beta1, .beta2 = *options.beta2, .epsilon = *options.epsilon};
  return std::make_unique<MuonOptimizer>(muon, *options.weight_decay);
}

constexpr OptimizerRow muon_rows[] = {
    {"muon", 0.02, make_muon, {{{"momentum", 0.95}, {"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-10}}}, 0, true}};

}  // namespace

std::span<const OptimizerRow> Muon::rows() noexcept { return muon_rows; }

}  // namespace ronda
