#include <ronda/core/denormals.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/runtime/strategy/local_sgd/outer_step.hpp>

#include <algorithm>

namespace ronda {
namespace {

RONDA_MULTIVERSION void subtract(const float* __restrict shared, const float* __restrict values,
                                 float* __restrict changes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) changes[i] = shared[i] - values[i];
}

RONDA_MULTIVERSION void take_mean(const float* __restrict changes, float* __restrict shared, float ranks,
                                  std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) shared[i] -= changes[i] / ranks;
}

RONDA_MULTIVERSION void take_nesterov(const float* __restrict changes, float* __restrict momentum,
                                      float* __restrict shared, float ranks, float rate, float by_momentum,
                                      std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float mean = changes[i] / ranks;
    momentum[i] = by_momentum * momentum[i] + mean;
    shared[i] -= rate * (mean + by_momentum * momentum[i]);
  }
}

RONDA_MULTIVERSION void go_on(const float* __restrict shared, const float* __restrict started, float* __restrict values,
                              std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = shared[i] + (values[i] - started[i]);
}

/// Calls `work(first, count)` on parts of `part`.
template <class Work>
void by_parts(Range part, int threads, Work&& work) {
  constexpr std::size_t line = 16;  // floats
  parallel_for(
      threads, part.size(),
      [&](Range piece) {
        const DenormalScope flushing(true);
        work(part.begin + piece.begin, piece.size());
      },
      line);
}

}  // namespace

OuterStep::OuterStep(const LocalSgd& options, std::size_t ranks, std::size_t count)
    : ranks_(static_cast<float>(ranks)),
      rate_(static_cast<float>(options.rate())),
      by_momentum_(static_cast<float>(options.momentum())),
      count_(count),
      shared_(Buffer::host(count * sizeof(float))),
      momentum_(options.outer_optimizer == OuterOptimizer::nesterov ? Buffer::host(count * sizeof(float)) : Buffer()) {}

void OuterStep::begin_with(const float* values) { std::copy_n(values, count_, shared()); }

void OuterStep::measure(const float* values, float* changes, Range part, int threads) const {
  by_parts(part, threads,
           [&](std::size_t at, std::size_t count) { subtract(shared() + at, values + at, changes + at, count); });
}

void OuterStep::take(const float* changes, Range part, int threads) {
  by_parts(part, threads, [&](std::size_t at, std::size_t count) {
    if (momentum_.bytes() == 0)
      take_mean(changes + at, shared() + at, ranks_, count);
    else
      take_nesterov(changes + at, reinterpret_cast<float*>(momentum_.data()) + at, shared() + at, ranks_, rate_,
                    by_momentum_, count);
  });
}

void OuterStep::apply(const float* changes, float* values, Range part, int threads) {
  take(changes, part, threads);
  std::copy_n(shared() + part.begin, part.size(), values + part.begin);
}

void OuterStep::apply_late(const float* changes, const float* started, float* values, Range part, int threads) {
  take(changes, part, threads);
  by_parts(part, threads,
           [&](std::size_t at, std::size_t count) { go_on(shared() + at, started + at, values + at, count); });
}

}  // namespace ronda
