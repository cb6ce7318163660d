#include <ronda/runtime/core/multiversion.hpp>
#include <ronda/runtime/core/parallel.hpp>
#include <ronda/runtime/strategy/gradient_accumulator.hpp>

#include <cstring>

namespace ronda {
namespace {

RONDA_MULTIVERSION void add(float* sum, const float* value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] += value[i];
}

}  // namespace

GradientAccumulator::GradientAccumulator(std::span<const Parameter> parameters, const std::byte* arena,
                                         std::size_t arena_bytes)
    : parameters_(parameters), arena_(arena), sums_(Buffer::host(arena_bytes)) {}

void GradientAccumulator::mark_ready(ParameterId id, Stream& stream) {
  const Tensor& gradient = parameters_[index_of(id)].gradient;
  auto* fresh = gradient.pointer<float>();
  auto* sum = reinterpret_cast<float*>(sums_.data() + (gradient.data() - arena_));
  const std::size_t count = gradient.desc().bytes() / sizeof(float);
  parallel_for(stream.threads(), count, [&](Range part) {
    if (!first_)
      add(last_ != nullptr ? fresh + part.begin : sum + part.begin,
          last_ != nullptr ? sum + part.begin : fresh + part.begin, part.size());
    else if (last_ == nullptr)
      std::memcpy(sum + part.begin, fresh + part.begin, part.size() * sizeof(float));
  });
  if (last_ != nullptr) last_->mark_ready(id, stream);
}

}  // namespace ronda
