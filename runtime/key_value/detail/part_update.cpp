#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/runtime/key_value/detail/part_update.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace ronda {
namespace {

class FunctionOnPart final : public PartUpdate {
 public:
  FunctionOnPart(KeyValueUpdate function, KeyPart part, std::span<float> values)
      : function_(std::move(function)), part_(std::move(part)), values_(values) {}
  void apply(std::uint64_t update, std::span<const float> gradient) override {
    function_(part_, update, values_, gradient);
  }

 private:
  KeyValueUpdate function_;
  KeyPart part_;
  std::span<float> values_;
};

/// A part is an arena of one parameter.
class OptimizerOnPart final : public PartUpdate {
 public:
  OptimizerOnPart(const OptimizerOptions& options, const Schedule& schedule, const KeyPart& part,
                  std::span<float> values)
      : optimizer_(make_optimizer(options)), schedule_(schedule), values_(values) {
    const TensorDesc desc{Shape{static_cast<std::int64_t>(values.size())}, DType::float32, {}};
    OptimizerBindings bindings{.values = values.data(), .segments = {{part.key, desc}}};
    for (std::size_t i = 0; i < optimizer_->states().size(); ++i) {
      states_.push_back(Buffer::host(Buffer::aligned(values.size_bytes())));
      bindings.states.push_back(reinterpret_cast<float*>(states_.back().data()));
    }
    optimizer_->bind(std::move(bindings));
  }
  void apply(std::uint64_t update, std::span<const float> gradient) override {
    const StepScalars scalars{.learning_rate = schedule_.rate(update), .step = update + 1};
    static_cast<void>(optimizer_->step(ArenaRange{values_.data(), gradient.data(), values_.size()}, scalars, stream_));
  }

 private:
  std::unique_ptr<Optimizer> optimizer_;
  Schedule schedule_;
  std::span<float> values_;
  std::vector<Buffer> states_;
  CpuStream stream_;
};

}  // namespace

MakePartUpdate replacing_update() {
  return function_update([](const KeyPart&, std::uint64_t, std::span<float> values, std::span<const float> gradient) {
    std::ranges::copy(gradient, values.begin());
  });
}

MakePartUpdate function_update(KeyValueUpdate update) {
  return [update = std::move(update)](const KeyPart& part, std::span<float> values) {
    return std::make_unique<FunctionOnPart>(update, part, values);
  };
}

MakePartUpdate optimizer_update(const OptimizerOptions& options, const Schedule& schedule) {
  const auto optimizer = make_optimizer(options);
  if (optimizer->needs_norms() || optimizer->has_two_passes() || optimizer->on_processor_alone())
    throw InputError(setting("name", "\"" + options.name + "\"") +
                     ": the optimizer needs whole parameters, of which a server has parts; take one that updates "
                     "each number by itself, as sgd or adam");
  return [options, schedule](const KeyPart& part, std::span<float> values) {
    return std::make_unique<OptimizerOnPart>(options, schedule, part, values);
  };
}

}  // namespace ronda
