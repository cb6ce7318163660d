#include <ronda/core/buffer.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/layers/onednn/sums.hpp>
#include <ronda/layers/onednn/winograd.hpp>
#include <ronda/layers/onednn/winograd_kernels.hpp>

#include <algorithm>
#include <array>

namespace ronda::onednn {

using namespace winograd;
using Tiling = WinogradTiling;

namespace {

float* floats(std::byte* scratch) { return reinterpret_cast<float*>(scratch); }

/// Floats of one worker: a block's inputs and products, transformed, and a word for each of its tiles.
std::int64_t worker_floats(const Tiling& t) {
  return t.block * (step_of(t.inputs) + step_of(t.width())) + (t.block + vector - 1) / vector * vector;
}

}  // namespace

Winograd::Winograd(const Runtime& runtime, const Loops& loops, const ConvolutionProblem& spec, const Images& input,
                   const Images& output, const TensorDesc& weight)
    : loops_(loops),
      threads_(runtime.threads),
      forward_(input, output, spec.padding.height, spec.padding.width, threads_),
      backward_(output, input, kernel_size - 1 - spec.padding.height, kernel_size - 1 - spec.padding.width, threads_),
      parameter_bytes_(weight.bytes()),
      weights_bytes_(0) {
  const TensorDesc liked = weight_of(spec);
  if (!same_bytes(weight, liked)) {
    to_parameter_ = std::make_unique<Kernel>(make_weight_reorder(runtime, liked, weight));
    from_parameter_ = std::make_unique<Kernel>(make_weight_reorder(runtime, weight, liked));
    weights_bytes_ = liked.bytes();
  }
  if (spec.pool && *spec.pool == PoolSpec{PoolKind::maximum, 2, 2, 0}) {
    const Shape shape = pool_output({output.samples, output.height, output.width, spec.outputs}, *spec.pool);
    pooled_ = output;
    pooled_->height = shape[1];
    pooled_->width = shape[2];
  }
  const auto of_convolution = [&](const Tiling& t) { return t.weight_floats() + threads_ * worker_floats(t); };
  const Tiling& t = forward_;
  constexpr std::int64_t amplified = 4;  // the transforms amplify the rounding of a block's sum
  blocks_ = SumParts::of(t.in_one_block ? 1 : (t.tiles() + t.block - 1) / t.block, amplified, t.weight_floats());
  const std::int64_t of_gradients = (1 + static_cast<std::int64_t>(blocks_.levels())) * t.weight_floats() +
                                    t.block * (step_of(t.inputs) + step_of(t.outputs));
  const std::int64_t most = std::max({of_convolution(forward_), of_convolution(backward_), of_gradients});
  scratch_bytes_ = weights_bytes_ + static_cast<std::size_t>(most) * sizeof(float);
}

/// The parameter, as the transforms read it.
const float* Winograd::weights(const float* parameter, std::byte* scratch) {
  if (!from_parameter_) return parameter;
  from_parameter_->run(std::array<void*, 2>{const_cast<float*>(parameter), scratch});
  return floats(scratch);
}

/// A block's products with a panel of the weights.
struct Winograd::Products {
  const float* m;
  const std::uint32_t* zero;  ///< for each tile, the outputs that are 0
  std::int64_t first, tiles, panel;
};

template <class Finish>
void Winograd::convolve(const Tiling& t, const float* x, const float* w, bool turned, float* u, Finish&& finish) const {
  float* const blocks = u + t.weight_floats();
  if (!t.in_one_block)
    parallel_for(threads_, static_cast<std::size_t>(t.pieces()), [&](Range range) {
      for (auto piece = static_cast<std::int64_t>(range.begin); piece < static_cast<std::int64_t>(range.end); ++piece)
        loops_.transform_weights(t, w, turned, piece, u + piece * t.piece_floats());
    });
  const auto workers = static_cast<std::size_t>(threads_);
  parallel_for(threads_, workers, [&](Range range) {
    for (std::size_t worker = range.begin; worker < range.end; ++worker) {
      float* const v = blocks + static_cast<std::int64_t>(worker) * worker_floats(t);
      float* const m = v + t.block * step_of(t.inputs);
      auto* const zero = reinterpret_cast<std::uint32_t*>(m + t.block * step_of(t.width()));
      const Range mine = part_of(static_cast<std::size_t>(t.tiles()), worker, workers);
      const auto end = static_cast<std::int64_t>(mine.end);
      for (auto first = static_cast<std::int64_t>(mine.begin); first < end; first += t.block) {
        const std::int64_t tiles = std::min(t.block, end - first);
        loops_.transform_inputs(t, x, first, {0, static_cast<std::size_t>(tiles)}, v, zero);
        for (std::int64_t piece = 0; piece < t.pieces(); ++piece) {
          const std::int64_t panel = piece / t.chunks(), chunk = piece % t.chunks();
          float* const weights = t.in_one_block ? u : u + piece * t.piece_floats();
          if (t.in_one_block) loops_.transform_weights(t, w, turned, piece, weights);
          for (std::int64_t e = 0; e < elements; ++e)
            loops_.multiply_tiles({v + chunk * t.input_vectors * spread + e * vector, step_of(t.inputs),
                                   weights + e * t.chunk() * t.width(), t.width(), m + e * vector, step_of(t.width()),
                                   tiles, t.chunk(), chunk > 0},
                                  t.vectors);
          if (chunk + 1 == t.chunks()) finish({m, zero, first, tiles, panel});
        }
      }
    }
  });
}

void Winograd::forward(const float* x, const float* w, const float* bias, bool relu, float* y, std::byte* scratch) {
  convolve(forward_, x, weights(w, scratch), false, floats(scratch + weights_bytes_), [&](const Products& b) {
    loops_.transform_outputs(forward_, b.m, b.first, b.tiles, b.panel, b.zero, bias, relu, y);
  });
}

void Winograd::forward_and_pool(const float* x, const float* w, const float* bias, bool relu, float* y,
                                std::uint8_t* winners, std::byte* scratch) {
  const PooledOutputs pooled{*pooled_, y, winners};
  convolve(forward_, x, weights(w, scratch), false, floats(scratch + weights_bytes_), [&](const Products& b) {
    loops_.transform_and_pool(forward_, b.m, b.first, b.tiles, b.panel, b.zero, bias, relu, pooled);
  });
}

void Winograd::backward_data(const float* dz, const float* w, float* dx, std::byte* scratch) {
  convolve(backward_, dz, weights(w, scratch), true, floats(scratch + weights_bytes_), [&](const Products& b) {
    loops_.transform_outputs(backward_, b.m, b.first, b.tiles, b.panel, b.zero, nullptr, false, dx);
  });
}

void Winograd::backward_weights(const float* x, const float* dz, float* dw, std::byte* scratch) {
  const Tiling& t = forward_;
  float* const liked = to_parameter_ ? floats(scratch) : dw;
  float* const du = floats(scratch + weights_bytes_);
  float* const v = du + t.weight_floats();
  float* const d = v + t.block * step_of(t.inputs);
  const auto multiply = [&](std::int64_t piece, std::int64_t e, std::int64_t tiles, bool add, float* sums) {
    const std::int64_t panel = piece / t.chunks(), chunk = piece % t.chunks();
    for (std::int64_t in = 0; in < t.input_vectors; ++in)
      loops_.multiply_channels({v + (chunk * t.input_vectors + in) * spread + e * vector, step_of(t.inputs),
                                d + panel * t.vectors * spread + e * vector, step_of(t.outputs),
                                sums + (e * t.chunk() + in * vector) * t.width(), t.width(), vector, tiles, add},
                               t.vectors);
  };
  if (t.in_one_block) {
    const Range all{0, static_cast<std::size_t>(t.tiles())};
    loops_.transform_inputs(t, x, 0, all, v, nullptr);
    loops_.transform_gradients(t, dz, 0, all, d);
    for (std::int64_t piece = 0; piece < t.pieces(); ++piece) {
      for (std::int64_t e = 0; e < elements; ++e) multiply(piece, e, t.tiles(), false, du);
      loops_.transform_weight_gradients(t, du, piece, liked);
    }
  } else {
    const auto add_blocks = [&](std::size_t part, float* sums) {
      const std::int64_t begin = blocks_.first(part) * t.block;
      const std::int64_t end = std::min(begin + blocks_.size(part) * t.block, t.tiles());
      for (std::int64_t first = begin; first < end; first += t.block) {
        const std::int64_t tiles = std::min(t.block, end - first);
        parallel_for(threads_, static_cast<std::size_t>(tiles), [&](Range range) {
          loops_.transform_inputs(t, x, first, range, v, nullptr);
          loops_.transform_gradients(t, dz, first, range, d);
        });
        parallel_for(threads_, static_cast<std::size_t>(t.pieces() * elements), [&](Range range) {
          for (auto i = static_cast<std::int64_t>(range.begin); i < static_cast<std::int64_t>(range.end); ++i)
            multiply(i / elements, i % elements, tiles, first > begin, sums + i / elements * t.piece_floats());
        });
      }
    };
    const auto count = static_cast<std::size_t>(t.weight_floats());
    sum_by_pairs({0, blocks_.count()}, du, count, d + t.block * step_of(t.outputs), threads_, add_blocks);
    if (t.tiles() == 0) std::fill_n(du, t.weight_floats(), 0.0F);
    parallel_for(threads_, static_cast<std::size_t>(t.pieces()), [&](Range range) {
      for (auto piece = static_cast<std::int64_t>(range.begin); piece < static_cast<std::int64_t>(range.end); ++piece)
        loops_.transform_weight_gradients(t, du + piece * t.piece_floats(), piece, liked);
    });
  }
  if (to_parameter_) to_parameter_->run(std::array<void*, 2>{liked, dw});
}

bool Winograd::suits(const ConvolutionProblem& spec) {
  return spec.input.dtype == DType::float32 && spec.is_usual() && spec.kernel == kernel_size && spec.stride == 1 &&
         spec.padding.height < kernel_size && spec.padding.width < kernel_size && spec.input.shape[3] % vector == 0 &&
         spec.outputs % vector == 0;
}

std::unique_ptr<Winograd> Winograd::make(const Runtime& runtime, const ConvolutionProblem& spec,
                                         const TensorDesc& convolved, const TensorDesc& weight) {
  const Loops* const loops = loops_here();
  if (loops == nullptr || !suits(spec)) return nullptr;
  const auto input = images_of(spec.input), output = images_of(convolved);
  if (!input || !output || input->lanes % loops->lanes != 0 || output->lanes % loops->lanes != 0) return nullptr;
  return std::unique_ptr<Winograd>(new Winograd(runtime, *loops, spec, *input, *output, weight));
}

TensorDesc Winograd::output_of(const ConvolutionProblem& spec) {
  return {convolution_output(spec), spec.input.dtype, spec.input.layout};
}
TensorDesc Winograd::weight_of(const ConvolutionProblem& spec) {
  return {weight_shape(spec, spec.input.shape), spec.input.dtype, Layout::parse("abcd16b16a")};
}

/// Tensors of the sizes of a step.
struct Winograd::Rehearsal {
  Buffer x, w, bias, y, winners, scratch;
};

std::shared_ptr<Winograd::Rehearsal> Winograd::make_rehearsal() const {
  Buffer bias = Buffer::host(static_cast<std::size_t>(forward_.outputs) * sizeof(float));
  Buffer y = zeros<float>(forward_.to), winners = Buffer::host(pooled_ ? y.bytes() / sizeof(float) : 0);
  return std::make_shared<Rehearsal>(Rehearsal{zeros<float>(forward_.from), Buffer::host(parameter_bytes_),
                                               std::move(bias), std::move(y), std::move(winners),
                                               Buffer::host(scratch_bytes_)});
}

std::function<void()> Winograd::forward_rehearsal(bool relu) {
  return rehearsal([this] { return make_rehearsal(); },
                   [this, relu](const Rehearsal& r) {
                     const float *x = data<float>(r.x), *w = data<float>(r.w), *bias = data<float>(r.bias);
                     if (pools())
                       forward_and_pool(x, w, bias, relu, data<float>(r.y), data<std::uint8_t>(r.winners),
                                        r.scratch.data());
                     else
                       forward(x, w, bias, relu, data<float>(r.y), r.scratch.data());
                   });
}
std::function<void()> Winograd::data_rehearsal() {
  return rehearsal([this] { return make_rehearsal(); },
                   [this](const Rehearsal& r) {
                     backward_data(data<float>(r.y), data<float>(r.w), data<float>(r.x), r.scratch.data());
                   });
}
std::function<void()> Winograd::weights_rehearsal() {
  return rehearsal([this] { return make_rehearsal(); },
                   [this](const Rehearsal& r) {
                     backward_weights(data<float>(r.x), data<float>(r.y), data<float>(r.w), r.scratch.data());
                   });
}

}  // namespace ronda::onednn
