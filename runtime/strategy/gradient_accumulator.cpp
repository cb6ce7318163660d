#include <ronda/runtime/strategy/gradient_accumulator.hpp>

#include <utility>

namespace ronda {

GradientAccumulator::GradientAccumulator(std::span<const Parameter> parameters, const std::byte* arena,
                                         std::size_t elements, std::shared_ptr<DeviceContext> context,
                                         std::size_t micro_batches)
    : context_(std::move(context)),
      parameters_(parameters),
      arena_(arena),
      sums_(context_->allocate(bytes(elements, micro_batches))) {}

OnReady GradientAccumulator::listen(bool first, bool last, GradientExchange& exchange) noexcept {
  first_ = first;
  last_ = last ? &exchange : nullptr;
  return first && last ? OnReady(exchange) : OnReady(*this);
}

void GradientAccumulator::mark_ready(ParameterId id, Stream& stream) {
  const Tensor& fresh = parameters_[index_of(id)].gradient;
  const auto element = static_cast<std::size_t>(fresh.data() - arena_) / size_of(fresh.dtype());
  float* const sums = reinterpret_cast<float*>(sums_.data()) + element;
  const Tensor sum({fresh.shape(), DType::float32, fresh.desc().layout}, sums, fresh.device());
  context_->add(fresh, first_ ? nullptr : sums, last_ != nullptr ? fresh : sum, stream);
  if (last_ != nullptr) last_->mark_ready(id, stream);
}

}  // namespace ronda
