#include <ronda/core/error.hpp>
#include <ronda/layers/dropout_mask.hpp>
#include <ronda/layers/reference/operations.hpp>

#include <cmath>
#include <limits>
#include <optional>

namespace ronda::reference {
namespace {

/// Sums are float64.
class Attention final : public Operation {
 public:
  Attention(const TensorDesc& input, const AttentionSpec& spec, std::string_view name)
      : spec_(spec), samples_(input.shape[0]), steps_(input.shape[1]), width_(input.shape[2] / 3) {
    if (!same_bytes(input, {input.shape, input.dtype, {}}))
      throw LogicError("an attention cannot read " + input.text());
    plan_.output = {output_shape(spec, {&input.shape, 1}), DType::float32, {}};
    plan_.pass_bytes = static_cast<std::size_t>(samples_ * spec.heads * steps_ * steps_) * sizeof(float);
    plan_.picks = "plain loops";
    plan_.backward_reads_output = false;
    depth_ = width_ / spec.heads;
    scale_ = 1 / std::sqrt(static_cast<double>(depth_));
    if (spec.dropout > 0) mask_.emplace(DropoutSpec{spec.dropout}, name, Shape{samples_, spec.heads, steps_, steps_});
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }

  void forward(Inputs inputs, const Pass& pass) override {
    const Packed<const float> in = packed<const float>(inputs.front().pointer<float>());
    const AttentionLengths lengths(inputs, steps_);
    each_query([&](std::int64_t n, std::int64_t head, std::int64_t query) {
      float* p = probabilities(n, head, query);
      const std::int64_t keys = keys_of(query, lengths.of(n));
      softmax(in, n, head, query, {p, static_cast<std::size_t>(keys)});
      for (std::int64_t i = 0; i < depth_; ++i) {
        double sum = 0;
        for (std::int64_t key = 0; key < keys; ++key)
          sum += double{p[key]} * factor(pass, n, head, query, key) * in.value(n, head, key)[i];
        output(memory_.output, n, head, query)[i] = static_cast<float>(sum);
      }
    });
  }

  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    if (memory_.input_gradient().empty()) return;
    const Packed<const float> in = packed<const float>(inputs.front().pointer<float>());
    std::ranges::fill(memory_.input_gradient().as<float>(), 0.0F);
    const Packed<float> gradient = packed(memory_.input_gradient().pointer<float>());
    const AttentionLengths lengths(inputs, steps_);
    each_query([&](std::int64_t n, std::int64_t head, std::int64_t query) {
      const std::int64_t keys = keys_of(query, lengths.of(n));
      const float *p = probabilities(n, head, query), *dy = output(output_gradient, n, head, query);
      double mean = 0;  // of the probabilities' gradients
      const auto slope = [&](std::int64_t key) {
        return factor(pass, n, head, query, key) * product(dy, in.value(n, head, key));
      };
      for (std::int64_t key = 0; key < keys; ++key) mean += p[key] * slope(key);
      for (std::int64_t key = 0; key < keys; ++key) {
        const double score = p[key] * (slope(key) - mean) * scale_;
        add(double{p[key]} * factor(pass, n, head, query, key), dy, gradient.value(n, head, key));
        add(score, in.key(n, head, key), gradient.query(n, head, query));
        add(score, in.query(n, head, query), gradient.key(n, head, key));
      }
    });
  }

 private:
  /// Where the vectors of a head lie.
  template <class Number>
  struct Packed {
    Number* data;
    std::int64_t steps, width, depth;

    [[nodiscard]] Number* query(std::int64_t n, std::int64_t head, std::int64_t step) const {
      return data + (n * steps + step) * 3 * width + head * depth;
    }
    [[nodiscard]] Number* key(std::int64_t n, std::int64_t head, std::int64_t step) const {
      return query(n, head, step) + width;
    }
    [[nodiscard]] Number* value(std::int64_t n, std::int64_t head, std::int64_t step) const {
      return query(n, head, step) + 2 * width;
    }
  };
  template <class Number>
  [[nodiscard]] Packed<Number> packed(Number* data) const {
    return {data, steps_, width_, depth_};
  }
  [[nodiscard]] float* output(const Tensor& tensor, std::int64_t n, std::int64_t head, std::int64_t step) const {
    return tensor.pointer<float>() + (n * steps_ + step) * width_ + head * depth_;
  }
  [[nodiscard]] float* probabilities(std::int64_t n, std::int64_t head, std::int64_t query) const {
    return reinterpret_cast<float*>(memory_.pass) + ((n * spec_.heads + head) * steps_ + query) * steps_;
  }
  /// How many a query reads.
  [[nodiscard]] std::int64_t keys_of(std::int64_t query, std::int64_t length) const {
    return spec_.causal ? std::min(query + 1, length) : length;
  }

  /// That a probability is multiplied with.
  [[nodiscard]] double factor(const Pass& pass, std::int64_t n, std::int64_t head, std::int64_t query,
                              std::int64_t key) const {
    if (!mask_ || pass.mode == Mode::evaluation) return 1;
    return mask_->factor_of(mask_->key(pass), pass, n, head * steps_ + query, key);
  }

  template <class Body>
  void each_query(Body body) const {
    for (std::int64_t n = 0; n < samples_; ++n)
      for (std::int64_t head = 0; head < spec_.heads; ++head)
        for (std::int64_t query = 0; query < steps_; ++query) body(n, head, query);
  }

  void softmax(const Packed<const float>& in, std::int64_t n, std::int64_t head, std::int64_t query,
               std::span<float> p) const {
    float largest = -std::numeric_limits<float>::infinity();
    for (std::size_t key = 0; key < p.size(); ++key) {
      const float* vector = in.key(n, head, static_cast<std::int64_t>(key));
      p[key] = static_cast<float>(scale_ * product(in.query(n, head, query), vector));
      largest = std::max(largest, p[key]);
    }
    double sum = 0;
    for (const float score : p) sum += std::exp(double{score} - largest);
    for (float& score : p) score = static_cast<float>(std::exp(double{score} - largest) / sum);
  }

  [[nodiscard]] double product(const float* a, const float* b) const {
    double sum = 0;
    for (std::int64_t i = 0; i < depth_; ++i) sum += double{a[i]} * b[i];
    return sum;
  }
  void add(double factor, const float* from, float* sum) const {
    for (std::int64_t i = 0; i < depth_; ++i) sum[i] += static_cast<float>(factor * from[i]);
  }

  AttentionSpec spec_;
  std::int64_t samples_, steps_, width_, depth_ = 0;  ///< depth: elements of a head
  double scale_ = 1;
  std::optional<DropoutMask> mask_;
  OperationMemory memory_;
};

}  // namespace

std::unique_ptr<Operation> make_attention(const TensorDesc& input, const AttentionSpec& spec, std::string_view name) {
  return std::make_unique<Attention>(input, spec, name);
}

}  // namespace ronda::reference
