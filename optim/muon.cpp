#include <ronda/core/tensor.hpp>
#include <ronda/optim/adam.hpp>
#include <ronda/optim/muon.hpp>
#include <ronda/optim/newton_schulz.hpp>
#include <ronda/optim/update_loop.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace ronda {
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
