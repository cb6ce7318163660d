#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/layers/arithmetic.hpp>
#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/onednn/operations.hpp>
#include <ronda/layers/onednn/sums.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace ronda::onednn {
namespace {

/// What a row is normalised by: y = (x − mean) · inverse · weight + bias.
struct RowMoments {
  float mean, inverse;  ///< of the deviation
};

/// What normalised elements are multiplied with and added to; null: 1 and 0.
template <LayerNumber T>
struct Factors {
  const T *weight, *bias;
};

[[gnu::always_inline]] inline float sum_of_lanes(float (&lanes)[16]) {
  for (int half = 8; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return lanes[0];
}

/// Elements of a row that are summed in float32 lanes; each lane sums a block.
constexpr std::int64_t row_block = 16 * sum_block;

/// The sum of term(0) … term(width - 1): in two times sixteen lanes, on every processor, so equal bits everywhere.
template <class Term>
[[gnu::always_inline]] inline float sum_of(std::int64_t width, Term term) {
  constexpr std::integral_constant<std::int64_t, 16> sixteen;
  double total = 0;
  std::int64_t i = 0;
  for (std::int64_t end = 0; end < width;) {
    end = std::min(end + 2 * row_block, width);
    float even[16] = {}, odd[16] = {};
    for (; i + 32 <= end; i += 32) {
      each_lane(sixteen, [&](std::int64_t l) RONDA_INLINE { even[l] += term(i + l); });
      each_lane(sixteen, [&](std::int64_t l) RONDA_INLINE { odd[l] += term(i + 16 + l); });
    }
    by_lanes(end - i, [&](std::int64_t lane, auto count) RONDA_INLINE {
      each_lane(count, [&](std::int64_t l) RONDA_INLINE { even[l] += term(i + lane + l); });
    });
    i = end;
    each_lane(sixteen, [&](std::int64_t l) RONDA_INLINE { even[l] += odd[l]; });
    total += double{sum_of_lanes(even)};
  }
  return static_cast<float>(total);
}

/// The squares are of distances to the mean, as sums of plain squares would cancel. The row stays in the first cache.
template <LayerNumber T>
[[gnu::always_inline]] inline RowMoments moments_of(const T* x, std::int64_t width, float epsilon) {
  const auto count = static_cast<float>(width);
  const float mean = sum_of(width, [=](std::int64_t i) RONDA_INLINE { return as_float(x[i]); }) / count;
  const float squares = sum_of(width, [=](std::int64_t i) RONDA_INLINE {
    const float distance = as_float(x[i]) - mean;
    return distance * distance;
  });
  return {mean, 1 / std::sqrt(squares / count + epsilon)};
}

template <LayerNumber T, class Weight, class Bias>
[[gnu::always_inline]] inline void normalize_row(const T* __restrict x, T* __restrict y, std::int64_t width,
                                                 const RowMoments& moments, Weight weight, Bias bias) {
  for (std::int64_t i = 0; i < width; ++i)
    y[i] = as_number<T>((as_float(x[i]) - moments.mean) * moments.inverse * weight(i) + bias(i));
}

template <LayerNumber T>
[[gnu::always_inline]] inline void normalize_loop(const T* x, T* y, RowMoments* moments, Range rows, std::int64_t width,
                                                  float epsilon, const Factors<T>& factors) {
  const T *w = factors.weight, *b = factors.bias;
  const auto weight = [w](std::int64_t i) RONDA_INLINE { return as_float(w[i]); };
  const auto bias = [b](std::int64_t i) RONDA_INLINE { return as_float(b[i]); };
  const auto one = [](std::int64_t) RONDA_INLINE { return 1.0F; };
  const auto zero = [](std::int64_t) RONDA_INLINE { return 0.0F; };
  for (auto row = static_cast<std::int64_t>(rows.begin); row < static_cast<std::int64_t>(rows.end); ++row) {
    const T* from = x + row * width;
    T* to = y + row * width;
    moments[row] = moments_of(from, width, epsilon);
    if (b != nullptr)
      normalize_row(from, to, width, moments[row], weight, bias);
    else if (w != nullptr)
      normalize_row(from, to, width, moments[row], weight, zero);
    else
      normalize_row(from, to, width, moments[row], one, zero);
  }
}

RONDA_MULTIVERSION void normalize_rows(const float* x, float* y, RowMoments* moments, Range rows, std::int64_t width,
                                       float epsilon, const Factors<float>& factors) {
  normalize_loop(x, y, moments, rows, width, epsilon, factors);
}
RONDA_MULTIVERSION void normalize_rows(const BFloat16* x, BFloat16* y, RowMoments* moments, Range rows,
                                       std::int64_t width, float epsilon, const Factors<BFloat16>& factors) {
  normalize_loop(x, y, moments, rows, width, epsilon, factors);
}

/// Sums that a row's gradient needs: of g = dy · weight, and of g · x̂, where x̂ is x normalised. Where there is a
/// weight, dy · x̂ and dy are added to the sums of the rows.
template <bool weighted, LayerNumber T>
[[gnu::always_inline]] inline std::pair<float, float> add_row(const T* __restrict x, const T* __restrict dy,
                                                              const T* __restrict weight, float* __restrict dw,
                                                              float* __restrict db, std::int64_t width,
                                                              const RowMoments& moments) {
  double sums = 0, sums_along = 0;
  for (std::int64_t begin = 0; begin < width; begin += row_block) {
    float sum[16] = {}, along[16] = {};
    by_lanes(std::min(row_block, width - begin), [&](std::int64_t lane, auto count) RONDA_INLINE {
      each_lane(count, [&](std::int64_t l) RONDA_INLINE {
        const std::int64_t i = begin + lane + l;
        const float normalized = (as_float(x[i]) - moments.mean) * moments.inverse, given = as_float(dy[i]);
        const float gradient = weighted ? given * as_float(weight[i]) : given;
        sum[l] += gradient;
        along[l] += gradient * normalized;
        if (weighted) {
          dw[i] += given * normalized;
          db[i] += given;
        }
      });
    });
    sums += double{sum_of_lanes(sum)};
    sums_along += double{sum_of_lanes(along)};
  }
  return {static_cast<float>(sums), static_cast<float>(sums_along)};
}

/// dx = (g − mean of g − x̂ · mean of g · x̂) / deviation.
template <bool weighted, LayerNumber T>
[[gnu::always_inline]] inline void write_row(const T* __restrict x, const T* __restrict dy, const T* __restrict weight,
                                             T* __restrict dx, std::int64_t width, const RowMoments& moments,
                                             std::pair<float, float> sums) {
  const float mean = sums.first / static_cast<float>(width), along = sums.second / static_cast<float>(width);
  for (std::int64_t i = 0; i < width; ++i) {
    const float normalized = (as_float(x[i]) - moments.mean) * moments.inverse, given = as_float(dy[i]);
    const float gradient = weighted ? given * as_float(weight[i]) : given;
    dx[i] = as_number<T>((gradient - mean - normalized * along) * moments.inverse);
  }
}

/// @param dx      null where nobody needs it
/// @param dw, db  not touched without a weight
template <LayerNumber T>
[[gnu::always_inline]] inline void backward_loop(const T* x, const T* dy, const RowMoments* moments, const T* weight,
                                                 T* dx, float* dw, float* db, Range rows, std::int64_t width) {
  for (auto row = static_cast<std::int64_t>(rows.begin); row < static_cast<std::int64_t>(rows.end); ++row) {
    const std::int64_t at = row * width;
    const auto sums = weight != nullptr ? add_row<true>(x + at, dy + at, weight, dw, db, width, moments[row])
                                        : add_row<false>(x + at, dy + at, weight, dw, db, width, moments[row]);
    if (dx == nullptr) continue;
    if (weight != nullptr)
      write_row<true>(x + at, dy + at, weight, dx + at, width, moments[row], sums);
    else
      write_row<false>(x + at, dy + at, weight, dx + at, width, moments[row], sums);
  }
}

RONDA_MULTIVERSION void rows_backward(const float* x, const float* dy, const RowMoments* moments, const float* weight,
                                      float* dx, float* dw, float* db, Range rows, std::int64_t width) {
  backward_loop(x, dy, moments, weight, dx, dw, db, rows, width);
}
RONDA_MULTIVERSION void rows_backward(const BFloat16* x, const BFloat16* dy, const RowMoments* moments,
                                      const BFloat16* weight, BFloat16* dx, float* dw, float* db, Range rows,
                                      std::int64_t width) {
  backward_loop(x, dy, moments, weight, dx, dw, db, rows, width);
}

/// By our own loops: each row is read from memory once in either direction. Threads sum up rows of their own, and their
/// sums are added in order: equal bits from run to run.
template <LayerNumber T>
class LayerNormalization final : public Operation {
 public:
  LayerNormalization(const Runtime& runtime, const TensorDesc& input, const LayerNormSpec& spec, Mode mode)
      : threads_(runtime.threads), rows_(rows_of(input, spec, "our loops")), epsilon_(spec.epsilon) {
    plan_ = rows_.plan;
    const std::size_t moments = static_cast<std::size_t>(rows_.rows) * sizeof(RowMoments);
    training_ = mode == Mode::training;
    (training_ ? plan_.pass_bytes : plan_.scratch_bytes) = moments;
    if (training_ && spec.affine)
      plan_.scratch_bytes = static_cast<std::size_t>(2 * threads_ * rows_.width) * (sizeof(double) + sizeof(float));
  }
  void bind(const OperationMemory& memory) override {
    memory_ = memory;
    moments_ = reinterpret_cast<RowMoments*>(training_ ? memory.pass : memory.scratch);
  }

  void forward(Inputs inputs, const Pass&) override {
    const Factors<T> factors{parameter(0), parameter(1)};
    parallel_for(threads_, static_cast<std::size_t>(rows_.rows), [&](Range rows) {
      normalize_rows(inputs.front().pointer<const T>(), memory_.output.pointer<T>(), moments_, rows, rows_.width,
                     epsilon_, factors);
    });
  }

  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    const Tensor& dx = memory_.input_gradient();
    const auto threads = static_cast<std::size_t>(threads_);
    const auto numbers = static_cast<std::size_t>(memory_.parameters.empty() ? 0 : 2 * rows_.width);
    parallel_for(threads_, threads, [&](Range workers) {
      for (std::size_t worker = workers.begin; worker < workers.end; ++worker) {
        double* const total = sums(worker, 0);
        float* const block = block_of(worker);
        std::fill_n(total, numbers, 0.0);
        std::fill_n(block, numbers, 0.0F);
        const Range mine = part_of(static_cast<std::size_t>(rows_.rows), worker, threads);
        for (std::size_t first = mine.begin; first < mine.end; first += sum_block) {
          rows_backward(inputs.front().pointer<const T>(), output_gradient.pointer<const T>(), moments_, parameter(0),
                        dx.empty() ? nullptr : dx.pointer<T>(), block, block + rows_.width,
                        {first, std::min(first + sum_block, mine.end)}, rows_.width);
          add_block(total, block, numbers);
        }
      }
    });
    for (std::size_t p = 0; p < memory_.parameters.size(); ++p) {
      add_up(p, memory_.parameters[p]->gradient.pointer<T>());
      pass.on_ready(memory_.parameters[p]->id, pass.stream);
    }
  }

 private:
  [[nodiscard]] const T* parameter(std::size_t index) const {
    return index < memory_.parameters.size() ? memory_.parameters[index]->value.pointer<const T>() : nullptr;
  }
  /// A worker's, for a parameter.
  [[nodiscard]] double* sums(std::size_t worker, std::size_t index) const {
    return reinterpret_cast<double*>(memory_.scratch) + (2 * worker + index) * static_cast<std::size_t>(rows_.width);
  }
  /// A worker's sums of a block of rows, for both parameters; they follow `sums`.
  [[nodiscard]] float* block_of(std::size_t worker) const {
    return reinterpret_cast<float*>(sums(static_cast<std::size_t>(threads_), 0)) +
           2 * worker * static_cast<std::size_t>(rows_.width);
  }
  void add_up(std::size_t index, T* gradient) const {
    double* const total = sums(0, index);
    for (std::size_t worker = 1; worker < static_cast<std::size_t>(threads_); ++worker)
      for (std::int64_t i = 0; i < rows_.width; ++i) total[i] += sums(worker, index)[i];
    std::transform(total, total + rows_.width, gradient,
                   [](double sum) { return as_number<T>(static_cast<float>(sum)); });
  }

  int threads_;
  NormalizedRows rows_;
  float epsilon_;
  bool training_;
  OperationMemory memory_;
  RowMoments* moments_ = nullptr;
};

}  // namespace

std::unique_ptr<Operation> make_layer_norm(const Runtime& runtime, const TensorDesc& input, const LayerNormSpec& spec,
                                           const OperationContext& context) {
  return with_layer_number(input.dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Operation> {
    return std::make_unique<LayerNormalization<T>>(runtime, input, spec, context.mode);
  });
}

}  // namespace ronda::onednn
