// Weights that a training sets to zero; training_state.cpp has the rest.
#include <ronda/core/device_context.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/optim/pruning.hpp>
#include <ronda/runtime/strategy/replica/shared_values.hpp>
#include <ronda/runtime/strategy/step/training_state.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

namespace ronda {
namespace {

/// Numbers of a device that the host changes: where they lie, or in a copy that is written back.
class Changed {
 public:
  /// @param numbers  null: none
  Changed(const ComputeDevice& device, float* numbers, std::size_t count)
      : device_(device), numbers_(numbers), count_(numbers != nullptr ? count : 0) {
    if (here() || count_ == 0) return;
    copy_ = device.context->allocate_staging(bytes());
    device.context->copy(numbers, copy_.data(), bytes(), *device.stream);
    device.stream->synchronize();
  }
  [[nodiscard]] std::span<float> on_host() const {
    return {here() ? numbers_ : reinterpret_cast<float*>(copy_.data()), count_};
  }
  void write_back() const {
    if (here() || count_ == 0) return;
    device_.context->copy(copy_.data(), numbers_, bytes(), *device_.stream);
    device_.stream->synchronize();
  }

 private:
  [[nodiscard]] bool here() const { return device_.context->device().kind == DeviceKind::cpu; }
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(float); }

  const ComputeDevice& device_;
  float* numbers_;
  std::size_t count_;
  Buffer copy_;
};

/// Calls body(segment) for each parameter that is pruned.
template <class Body>
void for_each_pruned(const OptimizerBindings& bindings, Body&& body) {
  for (const ArenaSegment& segment : bindings.segments) {
    const ParameterGroup& group = bindings.groups[segment.group];
    if (group.pruned && !group.frozen) body(segment);
  }
}

/// Elements of the layout that belong to no weight: they are zero.
std::size_t padding_of(const TensorDesc& desc) { return static_cast<std::size_t>(desc.padded_count() - desc.count()); }

}  // namespace

void TrainingState::prune(double share) {
  require_none_in_flight(parts_.queue, "prune");
  if (!(share >= 0 && share <= 1)) throw InputError("a share of the weights is from 0 to 1, not " + shortest(share));
  const ComputeDevice& device = parts_.replica.device();
  const OptimizerBindings& bindings = parts_.optimizer.bindings();
  auto* const averages = reinterpret_cast<float*>(parts_.replica.average().data());
  const auto prune_one = [&](const ArenaSegment& segment) {
    const auto stored = static_cast<std::size_t>(segment.desc.padded_count());
    const auto zeros = std::llround(share * static_cast<double>(segment.desc.count()));
    magnitudes_.resize(std::max(magnitudes_.size(), stored));
    const Changed values(device, bindings.values + segment.offset, stored),
        average(device, averages != nullptr ? averages + segment.offset : nullptr, stored);
    ronda::prune(values.on_host(), average.on_host(), static_cast<std::size_t>(zeros) + padding_of(segment.desc),
                 magnitudes_);
    values.write_back();
    average.write_back();
  };
  write_once(parts_.replica, parts_.communicator, [&] { for_each_pruned(bindings, prune_one); });
  set_keeps_zeros(true);
  round_values();
}

void TrainingState::set_keeps_zeros(bool keeps) {
  require_none_in_flight(parts_.queue, "set_keeps_zeros");
  if (keeps == keeps_zeros_) return;
  parts_.updater.set_keeps_zeros(keeps, parts_.replica.stream());
  keeps_zeros_ = keeps;
}

TrainingState::Zeros TrainingState::zeros() const {
  const OptimizerBindings& bindings = parts_.optimizer.bindings();
  Zeros found;
  for_each_pruned(bindings, [&](const ArenaSegment& segment) {
    const auto stored = static_cast<std::size_t>(segment.desc.padded_count());
    const Changed values(parts_.replica.device(), bindings.values + segment.offset, stored);
    found.weights += static_cast<std::uint64_t>(segment.desc.count());
    found.zeros += static_cast<std::uint64_t>(std::ranges::count(values.on_host(), 0.0F)) - padding_of(segment.desc);
  });
  return found;
}

}  // namespace ronda
