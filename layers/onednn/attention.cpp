#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/layers/dropout_mask.hpp>
#include <ronda/layers/onednn/exponential.hpp>
#include <ronda/layers/onednn/operations.hpp>
#include <ronda/layers/onednn/small_product.hpp>
#include <ronda/layers/onednn/transpose_four.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

namespace ronda::onednn {
namespace {

constexpr std::int64_t panel = product_columns;

[[gnu::always_inline]] inline float sum_of(float (&lanes)[16]) {
  for (int half = 8; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return lanes[0];
}

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t lanes = 16;
using Lanes = std::integral_constant<std::int64_t, lanes>;

/// Fills a row of scores up to whole vectors, with what has the probability 0; returns their length.
[[gnu::always_inline]] inline std::int64_t fill_up(float* scores, std::int64_t keys) {
  const std::int64_t whole = (keys + lanes - 1) / lanes * lanes;
  std::fill_n(scores + keys, whole - keys, -infinity);
  return whole;
}

/// Two numbers that turn a row of scores into probabilities: exp(scale · (score − largest)) · inverse. Backward uses
/// the same two, so it gets the same probabilities. (One number, the logarithm of the sum, has a rounding error as
/// large as that of the scores, which exp turns into a factor.)
struct RowSoftmax {
  float largest, inverse;
};
/// Scores become exp(scale · (score − largest)).
RONDA_MULTIVERSION RowSoftmax exponentials(float* row, std::int64_t keys, float scale) {
  float largest[lanes], sums[lanes] = {};
  for (float& lane : largest) lane = -infinity;
  const std::int64_t whole = fill_up(row, keys);
  for (std::int64_t i = 0; i < whole; i += lanes)
    each_lane(Lanes(),
              [&](std::int64_t l) RONDA_INLINE { largest[l] = row[i + l] > largest[l] ? row[i + l] : largest[l]; });
  for (int l = 1; l < lanes; ++l) largest[0] = std::max(largest[0], largest[l]);
  const float most = largest[0];
  for (std::int64_t i = 0; i < whole; i += lanes)
    each_lane(Lanes(), [&](std::int64_t l) RONDA_INLINE {
      const float power = exponential((row[i + l] - most) * scale);
      row[i + l] = power;
      sums[l] += power;
    });
  return {most, 1 / sum_of(sums)};
}

RONDA_MULTIVERSION void scale_row(float* row, std::int64_t count, float factor) {
  for (std::int64_t i = 0; i < count; ++i) row[i] *= factor;
}

RONDA_MULTIVERSION void multiply_row(float* __restrict row, const float* __restrict factors, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) row[i] *= factors[i];
}

/// Turns scores into probabilities again, and the probabilities' gradients into the scores'. The mean of the
/// probabilities' gradients is a sum of the same numbers that it is subtracted from: if one key has all of the
/// probability, the difference is exactly 0.
RONDA_MULTIVERSION void score_gradients(float* __restrict scores, float* __restrict gradients, std::int64_t keys,
                                        float scale, const RowSoftmax& row) {
  const std::int64_t whole = fill_up(scores, keys);
  const float most = row.largest, inverse = row.inverse;
  std::fill_n(gradients + keys, whole - keys, 0.0F);
  float sums[lanes] = {};
  for (std::int64_t i = 0; i < whole; i += lanes)
    each_lane(Lanes(), [&](std::int64_t l) RONDA_INLINE {
      const float probability = exponential((scores[i + l] - most) * scale) * inverse;
      scores[i + l] = probability;
      sums[l] += probability * gradients[i + l];
    });
  const float mean = sum_of(sums);
  for (std::int64_t i = 0; i < whole; i += lanes)
    each_lane(Lanes(), [&](std::int64_t l)
                           RONDA_INLINE { gradients[i + l] = scores[i + l] * (gradients[i + l] - mean) * scale; });
}

/// Vectors of a head, as a matrix (depth, steps) in panels of 32 steps: step t is column t % 32 of panel t / 32. The
/// last panel is filled up with zeros.
RONDA_MULTIVERSION void pack(const float* vectors, std::int64_t row, std::int64_t steps, std::int64_t depth,
                             float* __restrict panels) {
  for (std::int64_t begin = 0; begin < steps; begin += panel, vectors += panel * row, panels += depth * panel) {
    const std::int64_t count = std::min(panel, steps - begin);
    if (count < panel) std::fill_n(panels, depth * panel, 0.0F);
    const std::int64_t whole_steps = count / 4 * 4, whole_depth = depth / 4 * 4;
    for (std::int64_t t = 0; t < whole_steps; t += 4)
      for (std::int64_t i = 0; i < whole_depth; i += 4)
        transpose_four(vectors + t * row + i, row, panels + i * panel + t, panel);
    for (std::int64_t t = 0; t < count; ++t)
      for (std::int64_t i = t < whole_steps ? whole_depth : 0; i < depth; ++i)
        panels[i * panel + t] = vectors[t * row + i];
  }
}

/// Vectors of one head, by their step: row t is the step's.
template <class Number>
struct Rows {
  Number* data;
  std::int64_t row;
  [[nodiscard]] Number* operator[](std::int64_t step) const { return data + step * row; }
};

/// The scores of some queries, `begin` to `end`, in rows of all keys, of which the first `length` are no padding.
struct Block {
  float* data;
  std::int64_t begin, end, length, row;
  [[nodiscard]] float* operator[](std::int64_t query) const { return data + (query - begin) * row; }
};

/// By our own loops. Threads take whole heads. Some rows of scores are computed at a time, so that they stay in cache;
/// backward computes them again, from each row's largest score and sum.
class Attention final : public Operation {
 public:
  Attention(const Runtime& runtime, const TensorDesc& input, const AttentionSpec& spec, const OperationContext& context)
      : threads_(runtime.threads),
        heads_(spec.heads),
        causal_(spec.causal),
        samples_(input.shape[0]),
        steps_(input.shape[1]),
        width_(input.shape[2] / 3),
        depth_(width_ / spec.heads),
        row_((steps_ + panel - 1) / panel * panel),
        block_(rows_of_block(row_)),
        scale_(1 / std::sqrt(static_cast<float>(depth_))) {
    if (!same_bytes(input, {input.shape, input.dtype, {}}))
      throw LogicError("an attention cannot read " + input.text());
    plan_.output = {output_shape(spec, {&input.shape, 1}), DType::float32, {}};
    plan_.picks = "our loops";
    plan_.backward_reads_output = false;
    ArenaPlan worker;
    const auto floats = [&](std::int64_t count) {
      return worker.reserve(static_cast<std::size_t>(count) * sizeof(float));
    };
    keys_offset_ = floats(depth_ * row_);
    scores_offset_ = floats(block_ * row_);
    if (context.mode == Mode::training) {
      plan_.pass_bytes = static_cast<std::size_t>(samples_ * heads_ * steps_) * sizeof(RowSoftmax);
      values_offset_ = floats(depth_ * row_);
      gradients_offset_ = floats(block_ * row_);
      if (spec.dropout > 0) {
        mask_.emplace(DropoutSpec{spec.dropout}, context.name, Shape{samples_, heads_, steps_, steps_});
        factors_offset_ = floats(row_);
      }
    }
    worker_bytes_ = worker.bytes();
    plan_.scratch_bytes = worker_bytes_ * static_cast<std::size_t>(threads_);
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }

  void forward(Inputs inputs, const Pass& pass) override {
    const bool drops = mask_ && pass.mode == Mode::training;
    const AttentionLengths lengths(inputs, steps_);
    each_head([&](std::int64_t n, std::int64_t head, std::byte* scratch) {
      const Head<const float> in = vectors<const float>(inputs.front().pointer<float>(), n, head);
      const Rows<float> y = output(memory_.output, n, head);
      auto* const keys = reinterpret_cast<float*>(scratch + keys_offset_);
      pack(in.keys.data, in.keys.row, steps_, depth_, keys);
      each_block(scratch + scores_offset_, lengths.of(n), [&](const Block& scores) {
        multiply_by_panels(in.queries, keys, scores);
        for (std::int64_t query = scores.begin; query < scores.end; ++query) {
          const std::int64_t read = keys_of(query, scores);
          const RowSoftmax row = exponentials(scores[query], read, scale_);
          scale_row(scores[query], read, row.inverse);
          if (drops) multiply_row(scores[query], factors(pass, n, head, query, scratch), read);
          if (plan_.pass_bytes > 0) softmaxes(n, head)[query] = row;
        }
        multiply_rows(scores, in.values, y);
      });
    });
  }

  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    if (memory_.input_gradient().empty()) return;
    const AttentionLengths lengths(inputs, steps_);
    each_head([&](std::int64_t n, std::int64_t head, std::byte* scratch) {
      const Head<const float> in = vectors<const float>(inputs.front().pointer<float>(), n, head);
      const Head<float> gradient = vectors(memory_.input_gradient().pointer<float>(), n, head);
      const Rows<float> dy = output(output_gradient, n, head);
      auto* const keys = reinterpret_cast<float*>(scratch + keys_offset_);
      auto* const values = reinterpret_cast<float*>(scratch + values_offset_);
      pack(in.keys.data, in.keys.row, steps_, depth_, keys);
      pack(in.values.data, in.values.row, steps_, depth_, values);
      for (std::int64_t step = 0; step < steps_; ++step) {
        std::fill_n(gradient.keys[step], depth_, 0.0F);
        std::fill_n(gradient.values[step], depth_, 0.0F);
      }
      each_block(scratch + scores_offset_, lengths.of(n), [&](const Block& scores) {
        const Block gradients{reinterpret_cast<float*>(scratch + gradients_offset_), scores.begin, scores.end,
                              scores.length, row_};
        multiply_by_panels(in.queries, keys, scores);
        multiply_by_panels({dy.data, dy.row}, values, gradients);
        for (std::int64_t query = scores.begin; query < scores.end; ++query) {
          const std::int64_t read = keys_of(query, scores);
          const float* const kept = mask_ ? factors(pass, n, head, query, scratch) : nullptr;
          if (mask_) multiply_row(gradients[query], kept, read);
          score_gradients(scores[query], gradients[query], read, scale_, softmaxes(n, head)[query]);
          if (mask_) multiply_row(scores[query], kept, read);
        }
        add_columns(scores, {dy.data, dy.row}, gradient.values);
        multiply_rows(gradients, in.keys, gradient.queries);
        add_columns(gradients, in.queries, gradient.keys);
      });
    });
  }

 private:
  template <class Number>
  struct Head {
    Rows<Number> queries, keys, values;
  };
  template <class Number>
  [[nodiscard]] Head<Number> vectors(Number* packed, std::int64_t n, std::int64_t head) const {
    Number* const first = packed + n * steps_ * 3 * width_ + head * depth_;
    return {{first, 3 * width_}, {first + width_, 3 * width_}, {first + 2 * width_, 3 * width_}};
  }
  [[nodiscard]] Rows<float> output(const Tensor& tensor, std::int64_t n, std::int64_t head) const {
    return {tensor.pointer<float>() + n * steps_ * width_ + head * depth_, width_};
  }
  [[nodiscard]] RowSoftmax* softmaxes(std::int64_t n, std::int64_t head) const {
    return reinterpret_cast<RowSoftmax*>(memory_.pass) + (n * heads_ + head) * steps_;
  }
  /// What a dropout multiplies a query's probabilities with, in memory that the next query takes.
  [[nodiscard]] const float* factors(const Pass& pass, std::int64_t n, std::int64_t head, std::int64_t query,
                                     std::byte* scratch) const {
    auto* const row = reinterpret_cast<float*>(scratch + factors_offset_);
    mask_->write_factors(mask_->key(pass), mask_->draw(pass, n, head * steps_ + query),
                         {row, static_cast<std::size_t>(steps_)});
    return row;
  }
  /// How many a query reads.
  [[nodiscard]] std::int64_t keys_of(std::int64_t query, const Block& block) const {
    return causal_ ? std::min(query + 1, block.length) : block.length;
  }

  /// Whole tiles of a product, whose scores take half of a first-level cache; one tile where rows are longer.
  static std::int64_t rows_of_block(std::int64_t row) {
    constexpr std::int64_t floats = 4096;
    return std::clamp<std::int64_t>(floats / std::max<std::int64_t>(row, 1) / product_rows, 1, 8) * product_rows;
  }

  /// body(n, head, scratch); each thread has scratch of its own.
  template <class Body>
  void each_head(Body body) const {
    const auto workers = static_cast<std::size_t>(threads_);
    parallel_for(threads_, workers, [&](Range range) {
      for (std::size_t worker = range.begin; worker < range.end; ++worker) {
        const Range mine = part_of(static_cast<std::size_t>(samples_ * heads_), worker, workers);
        for (auto i = static_cast<std::int64_t>(mine.begin); i < static_cast<std::int64_t>(mine.end); ++i)
          body(i / heads_, i % heads_, memory_.scratch + worker * worker_bytes_);
      }
    });
  }
  template <class Body>
  void each_block(std::byte* scores, std::int64_t length, Body body) const {
    for (std::int64_t begin = 0; begin < steps_; begin += block_)
      body(Block{reinterpret_cast<float*>(scores), begin, std::min(begin + block_, steps_), length, row_});
  }

  /// block[q] = vectors[q] · all columns of `panels` that q reads, and some behind them.
  void multiply_by_panels(const Rows<const float>& vectors, const float* panels, const Block& block) const {
    for (std::int64_t column = 0; column < keys_of(block.end - 1, block); column += panel) {
      const std::int64_t begin = causal_ ? std::max(block.begin, column) : block.begin;
      multiply({.a = vectors[begin],
                .a_row = vectors.row,
                .a_column = 1,
                .b = panels + column * depth_,
                .b_row = panel,
                .c = block[begin] + column,
                .c_row = block.row,
                .rows = block.end - begin,
                .depth = depth_,
                .columns = panel});
    }
  }

  /// result[q] = Σ block[q, key] · vectors[key] over the keys that q reads.
  void multiply_rows(const Block& block, const Rows<const float>& vectors, const Rows<float>& result) const {
    const auto add = [&](std::int64_t query, std::int64_t rows, std::int64_t begin, std::int64_t end) {
      multiply({.a = block[query] + begin,
                .a_row = block.row,
                .a_column = 1,
                .b = vectors[begin],
                .b_row = vectors.row,
                .c = result[query],
                .c_row = result.row,
                .rows = rows,
                .depth = end - begin,
                .columns = depth_,
                .add = begin > 0});
    };
    if (!causal_) return add(block.begin, block.end - block.begin, 0, block.length);
    for (std::int64_t first = block.begin; first < block.end; first += product_rows) {
      const std::int64_t end = std::min(first + product_rows, block.end);
      const std::int64_t common = keys_of(first, block);
      add(first, end - first, 0, common);
      for (std::int64_t query = first + 1; query < end; ++query)
        if (keys_of(query, block) > common) add(query, 1, common, keys_of(query, block));
    }
  }

  /// result[key] += Σ block[q, key] · vectors[q] over the queries of the block that read it.
  void add_columns(const Block& block, const Rows<const float>& vectors, const Rows<float>& result) const {
    const auto add = [&](std::int64_t key, std::int64_t rows, std::int64_t begin, std::int64_t end) {
      if (begin < end)
        multiply({.a = block[begin] + key,
                  .a_row = 1,
                  .a_column = block.row,
                  .b = vectors[begin],
                  .b_row = vectors.row,
                  .c = result[key],
                  .c_row = result.row,
                  .rows = rows,
                  .depth = end - begin,
                  .columns = depth_,
                  .add = true});
    };
    if (!causal_) return add(0, block.length, block.begin, block.end);
    add(0, std::min(block.begin, block.length), block.begin, block.end);
    const std::int64_t last = std::min(block.end, block.length);
    for (std::int64_t first = block.begin; first < last; first += product_rows) {
      const std::int64_t end = std::min(first + product_rows, last);
      add(first, end - first, end - 1, block.end);
      for (std::int64_t key = first; key + 1 < end; ++key) add(key, 1, key, end - 1);
    }
  }

  int threads_;
  std::int64_t heads_;
  bool causal_;
  std::int64_t samples_, steps_, width_, depth_;  ///< depth: elements of a head
  std::int64_t row_, block_;                      ///< of scores: floats of a row, queries at a time
  float scale_;
  std::optional<DropoutMask> mask_;
  std::size_t keys_offset_ = 0, values_offset_ = 0, scores_offset_ = 0, gradients_offset_ = 0,
              factors_offset_ = 0;  ///< in scratch
  std::size_t worker_bytes_ = 0;
  OperationMemory memory_;
};

}  // namespace

std::unique_ptr<Operation> make_attention(const Runtime& runtime, const TensorDesc& input, const AttentionSpec& spec,
                                          const OperationContext& context) {
  return std::make_unique<Attention>(runtime, input, spec, context);
}

}  // namespace ronda::onednn
