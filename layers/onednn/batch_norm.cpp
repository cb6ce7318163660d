#include <ronda/core/buffer.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/layers/onednn/channel_loops.hpp>
#include <ronda/layers/onednn/operations.hpp>

#include <algorithm>
#include <cmath>
#include <span>

namespace ronda::onednn {
namespace {

/// By our own loops, in whatever layout the neighbours like, with the ReLU behind. Both directions have two halves:
/// sums of each channel over this rank's rows, which all ranks add up where they are synchronised, and what follows
/// from sums and their count. Threads sum up samples of their own, and their sums are added in order: equal bits from
/// run to run.
template <LayerNumber T>
class BatchNormalization final : public Operation {
 public:
  BatchNormalization(const Runtime& runtime, const TensorDesc& input, const Images& images, const BatchNormSpec& spec,
                     Mode mode)
      : threads_(runtime.threads),
        images_(images),
        spec_(spec),
        channels_(input.shape[input.shape.rank() - 1]),
        padded_(images.groups * images.lanes),
        training_(mode == Mode::training) {
    plan_ = plan_of_norm(input, spec, 1 + 2 * static_cast<std::size_t>(padded_), "our loops");
    const auto numbers = static_cast<std::size_t>(padded_);
    ArenaPlan kept, scratch;
    kept.reserve(sizeof(double));
    norm_offset_ = kept.reserve(4 * numbers * sizeof(float));
    plan_.pass_bytes = training_ ? kept.bytes() : 0;
    if (!training_) scratch.reserve(kept.bytes());
    sums_offset_ =
        scratch.reserve(training_ ? (1 + 2 * static_cast<std::size_t>(threads_) * numbers) * sizeof(double) : 0);
    channels_offset_ = scratch.reserve(training_ ? 2 * numbers * sizeof(float) : 0);
    plan_.scratch_bytes = scratch.bytes();
  }

  void bind(const OperationMemory& memory) override {
    memory_ = memory;
    kept_ = training_ ? memory.pass : memory.scratch;
  }

  void forward(Inputs inputs, const Pass& pass) override {
    const auto* x = inputs.front().pointer<const T>();
    const float* weights = weights_of(pass);
    const bool moves = pass.mode == Mode::training && !spec_.held;
    if (moves) ++*memory_.states[2].pointer<std::int64_t>();
    double& count = *reinterpret_cast<double*>(kept_);
    count = moves ? add_values(x, weights, pass) : 0;
    if (count > 0)
      set_norm_of_batch(count);
    else
      set_norm_of_running_values();
    auto* y = memory_.output.pointer<T>();
    const ChannelNorm norm = this->norm();
    each_worker([&](std::size_t, Range samples) {
      each_piece(images_, samples, nullptr, [&](std::int64_t at, std::int64_t channel, const Piece& piece) {
        normalize(x + at, y + at, norm.from(channel), piece);
      });
    });
  }

  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    const auto *x = inputs.front().pointer<const T>(), *dy = output_gradient.pointer<const T>();
    const float* weights = weights_of(pass);
    const ChannelSums sums = sums_of_gradients(x, dy, weights);
    for (std::size_t p = 0; p < memory_.parameters.size(); ++p) {
      const double* gradient = p == 0 ? sums.second : sums.first;
      std::transform(gradient, gradient + channels_, memory_.parameters[p]->gradient.pointer<T>(),
                     [](double sum) { return as_number<T>(static_cast<float>(sum)); });
      pass.on_ready(memory_.parameters[p]->id, pass.stream);
    }
    if (memory_.input_gradient().empty()) return;
    add_over_ranks(pass);
    write_input_gradient(x, dy, weights, sums, memory_.input_gradient().pointer<T>());
  }

 private:
  // ---- sums over rows -----------------------------------------------------------------------------------------------

  /// Values of a channel in rows that count.
  [[nodiscard]] double counted_values(const float* weights) const {
    const std::int64_t padding = weights == nullptr ? 0 : std::count(weights, weights + images_.samples, 0.0F);
    return static_cast<double>((images_.samples - padding) * images_.positions());
  }

  /// Sums up Σx and Σx² of each channel. Returns of how many values.
  double add_values(const T* x, const float* weights, const Pass& pass) const {
    const double count = counted_values(weights);
    float* shift = of_channels(0);
    if (count > 0)
      set_shift(x, weights, shift);
    else
      std::fill_n(shift, padded_, 0.0F);
    const ChannelSums sums =
        add_over_rows(weights, [&](std::int64_t at, std::int64_t channel, const ChannelSums& mine, const Piece& piece) {
          add_moments(x + at, shift + channel, mine, piece);
        });
    for (std::int64_t c = 0; c < channels_; ++c) {
      const double origin = shift[c];
      sums.second[c] += origin * (2 * sums.first[c] + origin * count);
      sums.first[c] += origin * count;
    }
    *count_of_sums() = count;
    add_over_ranks(pass);
    return *count_of_sums();
  }

  /// The sums, and their count, of all ranks' rows.
  void add_over_ranks(const Pass& pass) const {
    if (spec_.synchronized && pass.ranks != nullptr) pass.ranks->add_up(std::span(count_of_sums(), plan_.rank_sums));
  }

  /// The first pixel that counts: near enough to the mean.
  void set_shift(const T* x, const float* weights, float* shift) const {
    std::int64_t sample = 0;
    while (weights != nullptr && weights[sample] == 0) ++sample;
    for (std::int64_t group = 0; group < images_.groups; ++group)
      std::transform(x + (sample * images_.groups + group) * images_.image_size(),
                     x + (sample * images_.groups + group) * images_.image_size() + images_.lanes,
                     shift + group * images_.lanes, as_float<T>);
  }

  /// Σdz and Σdz · x̂ of each channel.
  ChannelSums sums_of_gradients(const T* x, const T* dy, const float* weights) const {
    const ChannelNorm norm = this->norm();
    return add_over_rows(weights,
                         [&](std::int64_t at, std::int64_t channel, const ChannelSums& mine, const Piece& piece) {
                           add_gradients(x + at, dy + at, norm.from(channel), mine, piece);
                         });
  }

  /// The sums of what add(offset, first channel, sums, piece) adds for all pieces that count.
  template <class Add>
  ChannelSums add_over_rows(const float* weights, Add add) const {
    each_worker([&](std::size_t worker, Range samples) {
      const ChannelSums mine = sums_of(worker);
      std::fill_n(mine.first, 2 * padded_, 0.0);
      each_piece(images_, samples, weights, [&](std::int64_t at, std::int64_t channel, const Piece& piece) {
        add(at, channel, mine.from(channel), piece);
      });
    });
    const ChannelSums total = sums_of(0);
    for (int worker = 1; worker < threads_; ++worker)
      for (std::int64_t i = 0; i < 2 * padded_; ++i)
        total.first[i] += sums_of(static_cast<std::size_t>(worker)).first[i];
    return total;
  }

  // ---- what follows from sums ---------------------------------------------------------------------------------------

  void set_norm_of_batch(double count) {
    const ChannelSums sums = sums_of(0);
    for (std::int64_t c = 0; c < channels_; ++c) {
      const double mean = sums.first[c] / count;
      const double variance = std::max(sums.second[c] / count - mean * mean, 0.0);  // NaN stays
      move_running_values(spec_, running(0)[c], running(1)[c], mean, variance, count);
      set_norm(c, mean, variance);
    }
    clear_padding();
  }
  void set_norm_of_running_values() {
    for (std::int64_t c = 0; c < channels_; ++c) set_norm(c, running(0)[c], running(1)[c]);
    clear_padding();
  }
  void set_norm(std::int64_t c, double mean, double variance) {
    const double inverse = 1 / std::sqrt(variance + double{spec_.epsilon});
    kept(0)[c] = static_cast<float>(mean);
    kept(1)[c] = static_cast<float>(inverse);
    kept(2)[c] = kept(1)[c] * (spec_.affine ? as_float(memory_.parameters[0]->value.pointer<const T>()[c]) : 1);
    kept(3)[c] = spec_.affine ? as_float(memory_.parameters[1]->value.pointer<const T>()[c]) : 0;
  }
  /// So that zeros stay zeros there.
  void clear_padding() {
    for (int number = 0; number < 4; ++number) std::fill(kept(number) + channels_, kept(number) + padded_, 0.0F);
  }

  /// The mean and the variance depend on each x that counts; the others get no gradient.
  void write_input_gradient(const T* x, const T* dy, const float* weights, const ChannelSums& sums, T* dx) {
    const double count = *reinterpret_cast<double*>(kept_);
    float *constant = of_channels(0), *slope = of_channels(1);
    for (std::int64_t c = 0; c < padded_; ++c) {
      const double share = count > 0 ? kept(2)[c] / count : 0;
      constant[c] = static_cast<float>(sums.first[c] * share);
      slope[c] = static_cast<float>(sums.second[c] * share * kept(1)[c]);
    }
    const ChannelNorm norm = this->norm();
    each_worker([&](std::size_t, Range samples) {
      clear_rows_of_no_weight(samples, weights, dx);
      each_piece(images_, samples, weights, [&](std::int64_t at, std::int64_t channel, const Piece& piece) {
        write_gradients(x + at, dy + at, dx + at, norm.from(channel), constant + channel, slope + channel, piece);
      });
    });
  }
  void clear_rows_of_no_weight(Range samples, const float* weights, T* dx) const {
    const std::int64_t size = images_.groups * images_.image_size();
    for (std::size_t sample = samples.begin; weights != nullptr && sample < samples.end; ++sample)
      if (weights[sample] == 0) std::fill_n(dx + static_cast<std::int64_t>(sample) * size, size, T{});
  }

  // ---- memory -------------------------------------------------------------------------------------------------------

  static const float* weights_of(const Pass& pass) {
    return pass.weights != nullptr ? pass.weights->pointer<float>() : nullptr;
  }
  [[nodiscard]] float* running(std::size_t state) const { return memory_.states[state].pointer<float>(); }
  /// Mean, inverse, factor, bias.
  [[nodiscard]] float* kept(int number) const {
    return reinterpret_cast<float*>(kept_ + norm_offset_) + number * padded_;
  }
  [[nodiscard]] ChannelNorm norm() const {
    return {kept(0), kept(1), kept(2), kept(3), spec_.activation == Activation::relu};
  }
  [[nodiscard]] float* of_channels(int number) const {
    return reinterpret_cast<float*>(memory_.scratch + channels_offset_) + number * padded_;
  }
  /// Before the sums of the first worker, which become those of all.
  [[nodiscard]] double* count_of_sums() const { return reinterpret_cast<double*>(memory_.scratch + sums_offset_); }
  [[nodiscard]] ChannelSums sums_of(std::size_t worker) const {
    double* first = count_of_sums() + 1 + 2 * static_cast<std::int64_t>(worker) * padded_;
    return {first, first + padded_};
  }
  /// body(worker, its samples)
  template <class Body>
  void each_worker(Body body) const {
    const auto threads = static_cast<std::size_t>(threads_);
    parallel_for(threads_, threads, [&](Range workers) {
      for (std::size_t worker = workers.begin; worker < workers.end; ++worker)
        body(worker, part_of(static_cast<std::size_t>(images_.samples), worker, threads));
    });
  }

  int threads_;
  Images images_;
  BatchNormSpec spec_;
  std::int64_t channels_, padded_;  ///< without and with the padding of the last group
  bool training_;
  std::size_t norm_offset_ = 0, sums_offset_ = 0, channels_offset_ = 0;
  OperationMemory memory_;
  std::byte* kept_ = nullptr;  ///< the count of values that the norm is of, 0 for running ones; the norm
};

}  // namespace

std::unique_ptr<Operation> make_batch_norm(const Runtime& runtime, const TensorDesc& input, const BatchNormSpec& spec,
                                           const OperationContext& context) {
  const auto images = images_of(input);
  if (!images) return nullptr;  // then the plain loops'
  return with_layer_number(input.dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Operation> {
    return std::make_unique<BatchNormalization<T>>(runtime, input, *images, spec, context.mode);
  });
}

}  // namespace ronda::onednn
