#include <ronda/runtime/strategy/step/gradient_accumulator.hpp>

namespace ronda {

GradientAccumulator::GradientAccumulator(Replica& replica, std::size_t micro_batches)
    : replica_(replica),
      wide_(replica.plan().widens()),
      sums_nothing_(micro_batches == 1),
      own_(replica.device().context->allocate(wide_ ? 0 : bytes(replica.plan().dense_elements(), micro_batches))),
      sums_(reinterpret_cast<float*>(wide_ ? replica.reduced().data() : own_.data())) {}

OnReady GradientAccumulator::listen(bool first, bool last, GradientExchange& exchange) {
  first_ = first;
  last_ = last ? &exchange : nullptr;
  if (first) replica_.clear_sparse_gradients();
  return !wide_ && (sums_nothing_ || (first && last)) ? OnReady(exchange) : OnReady(*this);
}

void GradientAccumulator::mark_ready(ParameterId id, Stream& stream) {
  const Parameter& parameter = replica_.parameters()[index_of(id)];
  if (parameter.touched == nullptr) add(parameter.gradient, stream);
  if (last_ != nullptr) last_->mark_ready(id, stream);
}

void GradientAccumulator::add(const Tensor& fresh, Stream& stream) {
  const auto element = static_cast<std::size_t>(fresh.data() - replica_.gradients().data()) / size_of(fresh.dtype());
  float* const sums = sums_ + element;
  const Tensor sum({fresh.shape(), DType::float32, fresh.desc().layout}, sums, fresh.device());
  replica_.device().context->add(fresh, first_ ? nullptr : sums, last_ != nullptr && !wide_ ? fresh : sum, stream);
}

}  // namespace ronda
