#include <ronda/layers/arithmetic.hpp>
#include <ronda/layers/reference/operations.hpp>

#include <cmath>
#include <limits>
#include <vector>

namespace ronda::reference {
namespace {

/// Channel by channel; sums are float64, of all ranks' rows where they are synchronised. What a batch was normalised by
/// is kept from forward to backward.
class BatchNormalization final : public Operation {
 public:
  BatchNormalization(const TensorDesc& input, const BatchNormSpec& spec, Mode mode)
      : spec_(spec),
        elements_(input),
        channels_(input.shape[input.shape.rank() - 1]),
        per_row_(input.shape.without_batch().count()),
        sums_(1 + 2 * static_cast<std::size_t>(channels_)) {
    plan_ = plan_of_norm(input, spec, sums_.size(), "plain loops");
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
    const bool moves = pass.mode == Mode::training && !spec_.held;
    if (moves) ++*memory_.states[2].pointer<std::int64_t>();
    if (!moves || !set_batch_moments(x, pass)) set_running_moments();
    for (std::int64_t c = 0; c < channels_; ++c) {
      each_of_channel(c, nullptr, [&](std::size_t i) {
        const float value = affine(c, x[i]);
        y[i] = spec_.activation == Activation::relu ? rectified(value) : value;
      });
    }
  }

  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    const auto x = inputs.front().as<float>(), dy = output_gradient.as<float>();
    std::ranges::fill(sums_, 0.0);
    for (std::int64_t c = 0; c < channels_; ++c)
      each_of_channel(c, pass.weights, [&](std::size_t i) {
        first(c) += before_activation(c, x[i], dy[i]);
        second(c) += double{before_activation(c, x[i], dy[i])} * moments_[c].normalized(x[i]);
      });
    for (std::size_t p = 0; p < memory_.parameters.size(); ++p) {
      std::copy_n(p == 0 ? &second(0) : &first(0), channels_, memory_.parameters[p]->gradient.pointer<float>());
      pass.on_ready(memory_.parameters[p]->id, pass.stream);
    }
    if (memory_.input_gradient().empty()) return;
    add_over_ranks(pass);
    const auto dx = memory_.input_gradient().as<float>();
    std::ranges::fill(dx, 0.0F);  // rows that do not count, and padding
    for (std::int64_t c = 0; c < channels_; ++c) {
      const Moments& moments = moments_[c];
      each_of_channel(c, pass.weights, [&](std::size_t i) {
        const double constant = first(c) + moments.normalized(x[i]) * second(c);
        const double gradient = before_activation(c, x[i], dy[i]) - constant / moments.count;
        dx[i] = static_cast<float>(gradient * weight(c) / moments.deviation);
      });
    }
  }

 private:
  struct Moments {
    double mean, deviation;
    double count;  ///< number of values in mean and variance; infinite for running values, independent of the batch
    [[nodiscard]] double normalized(float x) const { return (x - mean) / deviation; }
  };

  static constexpr double infinite = std::numeric_limits<double>::infinity();

  [[nodiscard]] float& running(std::size_t state, std::int64_t c) const {
    return memory_.states[state].pointer<float>()[c];
  }
  void set_running_moments() {
    for (std::int64_t c = 0; c < channels_; ++c)
      moments_[c] = {running(0, c), std::sqrt(double{running(1, c)} + double{spec_.epsilon}), infinite};
  }
  /// False where no row counts.
  bool set_batch_moments(std::span<const float> x, const Pass& pass) {
    std::ranges::fill(sums_, 0.0);
    each_of_channel(0, pass.weights, [&](std::size_t) { ++sums_[0]; });
    for (std::int64_t c = 0; c < channels_; ++c)
      each_of_channel(c, pass.weights, [&](std::size_t i) { first(c) += x[i]; });
    add_over_ranks(pass);
    const double count = sums_[0];
    if (count == 0) return false;
    for (std::int64_t c = 0; c < channels_; ++c) moments_[c] = {first(c) / count, 0, count};
    std::ranges::fill(sums_, 0.0);
    for (std::int64_t c = 0; c < channels_; ++c)
      each_of_channel(c, pass.weights,
                      [&](std::size_t i) { second(c) += (x[i] - moments_[c].mean) * (x[i] - moments_[c].mean); });
    add_over_ranks(pass);
    for (std::int64_t c = 0; c < channels_; ++c) {
      const double variance = second(c) / count;
      move_running_values(spec_, running(0, c), running(1, c), moments_[c].mean, variance, count);
      moments_[c].deviation = std::sqrt(variance + double{spec_.epsilon});
    }
    return true;
  }

  /// Two sums of each channel.
  [[nodiscard]] double& first(std::int64_t c) { return sums_[static_cast<std::size_t>(1 + c)]; }
  [[nodiscard]] double& second(std::int64_t c) { return sums_[static_cast<std::size_t>(1 + channels_ + c)]; }
  void add_over_ranks(const Pass& pass) {
    if (spec_.synchronized && pass.ranks != nullptr) pass.ranks->add_up(sums_);
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
  std::vector<double> sums_;  ///< a count, and two sums of each channel
  OperationMemory memory_;
  Moments* moments_ = nullptr;
};

}  // namespace

std::unique_ptr<Operation> make_batch_norm(const TensorDesc& input, const BatchNormSpec& spec, Mode mode) {
  return std::make_unique<BatchNormalization>(input, spec, mode);
}

}  // namespace ronda::reference
