#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/runtime/strategy/gradient_accumulator.hpp>

#include <cstring>
#include <utility>

namespace ronda {
namespace {

RONDA_MULTIVERSION void add(float* sum, const float* value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] += value[i];
}

}  // namespace

GradientAccumulator::GradientAccumulator(std::span<const Parameter> parameters, const std::byte* arena,
                                         std::size_t elements, std::shared_ptr<DeviceContext> context)
    : context_(std::move(context)),
      parameters_(parameters),
      arena_(arena),
      sums_(context_->allocate(elements * sizeof(float))) {}

void GradientAccumulator::mark_ready(ParameterId id, Stream& stream) {
  const Tensor& fresh = parameters_[index_of(id)].gradient;
  const auto element = static_cast<std::size_t>(fresh.data() - arena_) / size_of(fresh.dtype());
  float* const sum = reinterpret_cast<float*>(sums_.data()) + element;
  if (fresh.device().kind == DeviceKind::cpu)
    sum_here(fresh.pointer<float>(), sum, fresh.as<float>().size(), stream.threads());
  else
    sum_over_there(fresh, Tensor({fresh.shape(), DType::float32, fresh.desc().layout}, sum, fresh.device()), stream);
  if (last_ != nullptr) last_->mark_ready(id, stream);
}

void GradientAccumulator::sum_here(float* fresh, float* sum, std::size_t count, int threads) const {
  parallel_for(threads, count, [&](Range part) {
    if (!first_)
      add(last_ != nullptr ? fresh + part.begin : sum + part.begin,
          last_ != nullptr ? sum + part.begin : fresh + part.begin, part.size());
    else if (last_ == nullptr)
      std::memcpy(sum + part.begin, fresh + part.begin, part.size() * sizeof(float));
  });
}

void GradientAccumulator::sum_over_there(const Tensor& fresh, const Tensor& sum, Stream& stream) const {
  context_->add(fresh, first_ ? nullptr : sum.pointer<float>(), last_ != nullptr ? fresh : sum, stream);
}

}  // namespace ronda
