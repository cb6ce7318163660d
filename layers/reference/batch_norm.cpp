#include <ronda/layers/rectifier.hpp>
#include <ronda/layers/reference/operations.hpp>

#include <cmath>
#include <vector>

namespace ronda::reference {
namespace {

/// Channel by channel; sums are float64. What a batch was normalised by is kept from forward to backward.
class BatchNormalization final : public Operation {
 public:
  BatchNormalization(const TensorDesc& input, const BatchNormSpec& spec, Mode mode)
      : spec_(spec),
        elements_(input),
        channels_(input.shape[input.shape.rank() - 1]),
        per_row_(input.shape.without_batch().count()) {
    plan_ = plan_of_norm(input, spec, "plain loops");
    training_ = mode == Mode::training;
    (training_ ? plan_.pass_bytes : plan_.scratch_bytes) = static_cast<std::size_t>(channels_) * sizeof(Moments);
  }
  void bind(const OperationMemory& memory) override {
    memory_ = memory;
    moments_ = reinterpret_cast<Moments*>(training_ ? memory.pass : memory.scratch);
  }

  void forward(Inputs inputs, const Pass& pass) override {
    const auto x = inputs.front().as<float>(), y = memory_.output.as<float>();
    std::ranges::fill(y, 0.0F);  // padding too
    if (pass.mode == Mode::training) ++*memory_.states[2].pointer<std::int64_t>();
    for (std::int64_t c = 0; c < channels_; ++c) {
      moments_[c] = pass.mode == Mode::training ? batch_moments(x, c, pass) : running_moments(c);
      each_of_channel(c, nullptr, [&](std::size_t i) {
        const float value = affine(c, x[i]);
        y[i] = spec_.activation == Activation::relu ? rectified(value) : value;
      });
    }
  }

  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    const auto x = inputs.front().as<float>(), dy = output_gradient.as<float>();
    std::vector<double> sums, along;
    for (std::int64_t c = 0; c < channels_; ++c) {
      double sum = 0, product = 0;
      each_of_channel(c, pass.weights, [&](std::size_t i) {
        sum += before_activation(c, x[i], dy[i]);
        product += double{before_activation(c, x[i], dy[i])} * moments_[c].normalized(x[i]);
      });
      sums.push_back(sum);
      along.push_back(product);
    }
    for (std::size_t p = 0; p < memory_.parameters.size(); ++p) {
      std::ranges::copy(p == 0 ? along : sums, memory_.parameters[p]->gradient.as<float>().begin());
      pass.on_ready(memory_.parameters[p]->id, pass.stream);
    }
    if (memory_.input_gradient().empty()) return;
    const auto dx = memory_.input_gradient().as<float>();
    std::ranges::fill(dx, 0.0F);  // rows that do not count, and padding
    for (std::int64_t c = 0; c < channels_; ++c) {
      const Moments& moments = moments_[c];
      const auto channel = static_cast<std::size_t>(c);
      each_of_channel(c, pass.weights, [&](std::size_t i) {
        const double constant = sums[channel] + moments.normalized(x[i]) * along[channel];
        const double gradient = before_activation(c, x[i], dy[i]) - constant / moments.count;
        dx[i] = static_cast<float>(gradient * weight(c) / moments.deviation);
      });
    }
  }

 private:
  struct Moments {
    double mean, deviation;
    double count;  ///< of the values that they are of
    [[nodiscard]] double normalized(float x) const { return (x - mean) / deviation; }
  };

  Moments running_moments(std::int64_t c) const {
    return {memory_.states[0].pointer<float>()[c],
            std::sqrt(double{memory_.states[1].pointer<float>()[c]} + double{spec_.epsilon}), 0};
  }
  Moments batch_moments(std::span<const float> x, std::int64_t c, const Pass& pass) const {
    double count = 0, sum = 0, squares = 0;
    each_of_channel(c, pass.weights, [&](std::size_t i) { sum += x[i], ++count; });
    if (count == 0) return running_moments(c);
    const double mean = sum / count;
    each_of_channel(c, pass.weights, [&](std::size_t i) { squares += (x[i] - mean) * (x[i] - mean); });
    const double variance = squares / count;
    move_running_values(spec_, memory_.states[0].pointer<float>()[c], memory_.states[1].pointer<float>()[c], mean,
                        variance, count);
    return {mean, std::sqrt(variance + double{spec_.epsilon}), count};
  }

  [[nodiscard]] float affine(std::int64_t c, float x) const {
    return static_cast<float>(moments_[c].normalized(x)) * weight(c) + bias(c);
  }
  [[nodiscard]] float before_activation(std::int64_t c, float x, float dy) const {
    return spec_.activation == Activation::relu ? rectified_gradient(affine(c, x), dy) : dy;
  }
  [[nodiscard]] float weight(std::int64_t c) const {
    return spec_.affine ? memory_.parameters[0]->value.pointer<float>()[c] : 1;
  }
  [[nodiscard]] float bias(std::int64_t c) const {
    return spec_.affine ? memory_.parameters[1]->value.pointer<float>()[c] : 0;
  }

  /// body(offset) of the channel's elements in all rows, or in those of weights other than 0.
  template <class Body>
  void each_of_channel(std::int64_t c, const Tensor* weights, Body body) const {
    for (std::int64_t i = c; i < elements_.count(); i += channels_)
      if (weights == nullptr || weights->pointer<float>()[i / per_row_] != 0) body(elements_[i]);
  }

  BatchNormSpec spec_;
  Elements elements_;
  std::int64_t channels_, per_row_;
  bool training_;
  OperationMemory memory_;
  Moments* moments_ = nullptr;
};

}  // namespace

std::unique_ptr<Operation> make_batch_norm(const TensorDesc& input, const BatchNormSpec& spec, Mode mode) {
  return std::make_unique<BatchNormalization>(input, spec, mode);
}

}  // namespace ronda::reference
