#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/core/multiversion.hpp>
#include <ronda/runtime/core/parallel.hpp>
#include <ronda/runtime/strategy/gradient_accumulator.hpp>

#include <cstring>
#include <string>
#include <utility>

namespace ronda {
namespace {

RONDA_MULTIVERSION void add(float* sum, const float* value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] += value[i];
}

}  // namespace

GradientAccumulator::GradientAccumulator(std::span<const Parameter> parameters, const std::byte* arena,
                                         std::size_t arena_bytes, std::shared_ptr<DeviceContext> context)
    : context_(std::move(context)), parameters_(parameters), arena_(arena), sums_(context_->allocate(arena_bytes)) {
  for (const Parameter& parameter : parameters)
    if (parameter.gradient.dtype() != DType::float32)
      throw InputError("micro-batches add up gradients of float32, not of " +
                       std::string(name_of(parameter.gradient.dtype())) + ", in this version");
}

void GradientAccumulator::mark_ready(ParameterId id, Stream& stream) {
  const Tensor& gradient = parameters_[index_of(id)].gradient;
  auto* fresh = gradient.pointer<float>();
  auto* sum = reinterpret_cast<float*>(sums_.data() + (gradient.data() - arena_));
  const std::size_t count = gradient.desc().bytes() / sizeof(float);
  if (gradient.device().kind == DeviceKind::cpu)
    sum_here(fresh, sum, count, stream.threads());
  else
    sum_over_there(fresh, sum, count, stream);
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

void GradientAccumulator::sum_over_there(float* fresh, float* sum, std::size_t count, Stream& stream) const {
  if (!first_)
    context_->add(last_ != nullptr ? sum : fresh, last_ != nullptr ? fresh : sum, count, stream);
  else if (last_ == nullptr)
    context_->copy(fresh, sum, count * sizeof(float), stream);
}

}  // namespace ronda
