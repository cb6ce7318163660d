#include <ronda/core/error.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/core/state.hpp>
#include <ronda/layers/reference/operations.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace ronda::reference {
namespace {

RONDA_MULTIVERSION void add_row(double* sum, const float* row, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) sum[i] += double{row[i]};
}

RONDA_MULTIVERSION void add_scaled(double* sum, float factor, const float* row, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) sum[i] += double{factor * row[i]};
}

/// Sums over a bag, and over the gradients of a row, are float64.
class Embedding final : public Operation {
 public:
  Embedding(const TensorDesc& tokens, const EmbeddingSpec& spec)
      : spec_(spec),
        samples_(static_cast<std::size_t>(tokens.shape[0])),
        width_(static_cast<std::size_t>(spec.width)),
        tokens_(static_cast<std::size_t>(tokens.shape.without_batch().count())),
        sums_(width_),
        factors_(samples_),
        first_use_(static_cast<std::size_t>(spec.rows), none),
        next_use_(samples_ * tokens_) {
    plan_.output = {output_shape(spec, {&tokens.shape, 1}), DType::float32, {}};
    plan_.parameters = {{Shape{spec.rows, spec.width}, DType::float32, {}}};
    plan_.picks = "plain loops";
    plan_.backward_reads_output = false;
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }

  void forward(Inputs inputs, const Pass&) override {
    const auto tokens = inputs.front().as<const std::int32_t>();
    check(tokens);
    for (std::size_t n = 0; n < samples_; ++n) {
      const auto sample = tokens.subspan(n * tokens_, tokens_);
      float* y = memory_.output.pointer<float>() + n * outputs_a_sample();
      spec_.bag ? sum_up(sample, y) : look_up(sample, y);
    }
  }

  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    const auto tokens = inputs.front().as<const std::int32_t>();
    Parameter& table = *memory_.parameters.front();
    if (table.touched == nullptr) std::ranges::fill(table.gradient.as<float>(), 0.0F);
    list_uses(tokens, pass.weights != nullptr ? pass.weights->pointer<float>() : nullptr);
    for (std::size_t use = 0; use < tokens.size(); ++use) {
      if (is_padding(tokens[use])) continue;
      std::int32_t& first = first_use_[static_cast<std::size_t>(tokens[use])];
      if (first != static_cast<std::int32_t>(use)) continue;
      add_gradient(table, tokens, first, output_gradient.pointer<float>());
      first = none;
    }
    pass.on_ready(table.id, pass.stream);
  }

 private:
  [[nodiscard]] std::size_t outputs_a_sample() const noexcept { return spec_.bag ? width_ : tokens_ * width_; }
  [[nodiscard]] bool is_padding(std::int32_t token) const noexcept { return token == spec_.padding; }
  [[nodiscard]] std::size_t place(std::int32_t token) const noexcept {
    return static_cast<std::size_t>(token) * width_;
  }
  [[nodiscard]] const float* row(std::int32_t token) const noexcept {
    return memory_.parameters.front()->value.pointer<float>() + place(token);
  }

  void check(std::span<const std::int32_t> tokens) const {
    const auto wrong = std::ranges::find_if(
        tokens, [this](std::int32_t token) { return (token < 0 || token >= spec_.rows) && !is_padding(token); });
    if (wrong == tokens.end()) return;
    const auto index = static_cast<std::size_t>(wrong - tokens.begin());
    throw InputError("sample " + std::to_string(index / tokens_) + " of the batch has token " + std::to_string(*wrong) +
                     " at place " + std::to_string(index % tokens_) + "; the embedding's are 0 to " +
                     std::to_string(spec_.rows - 1) +
                     (spec_.padding < 0 ? ", and -1 for padding" : "; check the size of the vocabulary"));
  }

  void look_up(std::span<const std::int32_t> sample, float* y) const {
    for (const std::int32_t token : sample) {
      token < 0 ? std::fill_n(y, width_, 0.0F) : std::copy_n(row(token), width_, y);
      y += width_;
    }
  }

  void sum_up(std::span<const std::int32_t> sample, float* y) {
    std::ranges::fill(sums_, 0.0);
    for (const std::int32_t token : sample)
      if (!is_padding(token)) add_row(sums_.data(), row(token), width_);
    const float factor = factor_of(sample);
    std::ranges::transform(sums_, y, [factor](double sum) { return static_cast<float>(sum) * factor; });
  }

  /// That each row of a bag is multiplied with.
  [[nodiscard]] float factor_of(std::span<const std::int32_t> sample) const {
    if (spec_.bag != BagMode::mean) return 1;
    const auto count = std::ranges::count_if(sample, [this](std::int32_t token) { return !is_padding(token); });
    return count == 0 ? 1.0F : 1.0F / static_cast<float>(count);
  }

  /// Links the uses of each row, in their order. Samples of weight 0 have no gradient and are skipped.
  void list_uses(std::span<const std::int32_t> tokens, const float* weights) {
    for (std::size_t n = samples_; n-- > 0;) {
      if (weights != nullptr && weights[n] == 0) continue;
      factors_[n] = factor_of(tokens.subspan(n * tokens_, tokens_));
      for (std::size_t use = (n + 1) * tokens_; use-- > n * tokens_;) {
        if (is_padding(tokens[use])) continue;
        std::int32_t& first = first_use_[static_cast<std::size_t>(tokens[use])];
        next_use_[use] = std::exchange(first, static_cast<std::int32_t>(use));
      }
    }
  }

  /// Adds the gradients of all uses of a row.
  void add_gradient(Parameter& table, std::span<const std::int32_t> tokens, std::int32_t first, const float* dy) {
    const std::int32_t token = tokens[static_cast<std::size_t>(first)];
    if (table.touched != nullptr) table.touched->add(token);
    float* const gradient = table.gradient.pointer<float>() + place(token);
    std::copy_n(gradient, width_, sums_.begin());
    for (std::int32_t next = first; next != none; next = next_use_[static_cast<std::size_t>(next)]) {
      const std::size_t use = static_cast<std::size_t>(next), sample = use / tokens_;
      add_scaled(sums_.data(), factors_[sample], dy + (spec_.bag ? sample : use) * width_, width_);
    }
    std::ranges::transform(sums_, gradient, [](double sum) { return static_cast<float>(sum); });
  }

  static constexpr std::int32_t none = -1;

  EmbeddingSpec spec_;
  std::size_t samples_, width_, tokens_;            ///< `tokens_` per sample
  std::vector<double> sums_;                        ///< one row's
  std::vector<float> factors_;                      ///< by sample: factor_of
  std::vector<std::int32_t> first_use_, next_use_;  ///< by row, by use; `none` after the last
  OperationMemory memory_;
};

}  // namespace

std::unique_ptr<Operation> make_embedding(const TensorDesc& tokens, const EmbeddingSpec& spec) {
  return std::make_unique<Embedding>(tokens, spec);
}

}  // namespace ronda::reference
