#include <ronda/core/error.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/core/touched_rows.hpp>
#include <ronda/layers/reference/operations.hpp>

#include <algorithm>
#include <string>

namespace ronda::reference {
namespace {

RONDA_MULTIVERSION void add_row(float* sum, const float* row, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) sum[i] += row[i];
}

RONDA_MULTIVERSION void add_scaled(float* sum, float factor, const float* row, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) sum[i] += factor * row[i];
}

class Embedding final : public Operation {
 public:
  Embedding(const TensorDesc& tokens, const EmbeddingSpec& spec)
      : spec_(spec),
        samples_(static_cast<std::size_t>(tokens.shape[0])),
        width_(static_cast<std::size_t>(spec.width)),
        tokens_(static_cast<std::size_t>(tokens.shape.without_batch().count())) {
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
    const float* weights = pass.weights != nullptr ? pass.weights->pointer<float>() : nullptr;
    for (std::size_t n = 0; n < samples_; ++n) {
      if (weights != nullptr && weights[n] == 0) continue;  // all of its gradient is zero
      add_gradient(table, tokens.subspan(n * tokens_, tokens_),
                   output_gradient.pointer<float>() + n * outputs_a_sample());
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

  void sum_up(std::span<const std::int32_t> sample, float* y) const {
    std::fill_n(y, width_, 0.0F);
    for (const std::int32_t token : sample)
      if (!is_padding(token)) add_row(y, row(token), width_);
    const float factor = factor_of(sample);
    if (factor != 1)
      for (std::size_t i = 0; i < width_; ++i) y[i] *= factor;
  }

  /// That each row of a bag is multiplied with.
  [[nodiscard]] float factor_of(std::span<const std::int32_t> sample) const {
    if (spec_.bag != BagMode::mean) return 1;
    const auto count = std::ranges::count_if(sample, [this](std::int32_t token) { return !is_padding(token); });
    return count == 0 ? 1.0F : 1.0F / static_cast<float>(count);
  }

  void add_gradient(Parameter& table, std::span<const std::int32_t> sample, const float* dy) const {
    auto* gradient = table.gradient.pointer<float>();
    const float factor = factor_of(sample);
    for (const std::int32_t token : sample) {
      if (!is_padding(token)) {
        if (table.touched != nullptr) table.touched->add(token);
        add_scaled(gradient + place(token), factor, dy, width_);
      }
      if (!spec_.bag) dy += width_;
    }
  }

  EmbeddingSpec spec_;
  std::size_t samples_, width_, tokens_;  ///< of a sample
  OperationMemory memory_;
};

}  // namespace

std::unique_ptr<Operation> make_embedding(const TensorDesc& tokens, const EmbeddingSpec& spec) {
  return std::make_unique<Embedding>(tokens, spec);
}

}  // namespace ronda::reference
