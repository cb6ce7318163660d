#include "support/fake_training.hpp"

#include <ronda/core/error.hpp>
#include <ronda/optim/rules.hpp>

#include <limits>
#include <utility>
#include <vector>

#include "support/fake_device.hpp"
#include "support/rounded_primitives.hpp"

namespace ronda::test {
namespace {

template <class Work>
void queue(Stream& stream, Work&& work) {
  const InsideFake inside;
  dynamic_cast<FakeStream&>(stream).queue(std::forward<Work>(work));
}

class QueuedOperation final : public Operation {
 public:
  explicit QueuedOperation(std::unique_ptr<Operation> operation) : operation_(std::move(operation)) {
    plan_ = operation_->plan();
    plan_.in_halves = false;
  }

  void bind(const OperationMemory& memory) override {
    parameters_ = memory.parameters;
    operation_->bind(memory);
  }
  void forward(Inputs inputs, const Pass& pass) override {
    queue(pass.stream, [this, given = copied(inputs), pass] { operation_->forward(given, pass); });
  }
  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    Pass quiet = pass;
    quiet.on_ready = {};
    queue(pass.stream, [this, given = copied(inputs), output_gradient, quiet] {
      operation_->backward(given, output_gradient, quiet);
    });
    for (const Parameter* parameter : parameters_) pass.on_ready(parameter->id, pass.stream);
  }

 private:
  static std::vector<Tensor> copied(Inputs inputs) {
    const InsideFake inside;
    return {inputs.begin(), inputs.end()};
  }

  std::unique_ptr<Operation> operation_;
  std::vector<Parameter*> parameters_;
};

class QueuedLoss final : public LossOperation {
 public:
  explicit QueuedLoss(std::unique_ptr<LossOperation> operation) : operation_(std::move(operation)) {}
  [[nodiscard]] std::size_t scratch_bytes() const noexcept override { return operation_->scratch_bytes(); }
  void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte* scratch,
           const Pass& pass) override {
    queue(pass.stream, [=, this] {
      try {
        operation_->run(outputs, target, gradient, scratch, pass);
      } catch (const InputError&) {  // a label that is none: a device cannot throw
        pass.control->loss = std::numeric_limits<double>::quiet_NaN();
      }
    });
  }

 private:
  std::unique_ptr<LossOperation> operation_;
};

class QueuedPrimitives final : public Primitives {
 public:
  explicit QueuedPrimitives(std::unique_ptr<Primitives> loops) : loops_(std::move(loops)) {}
  [[nodiscard]] std::string name() const override { return loops_->name() + ", queued"; }
  [[nodiscard]] DType dtype() const noexcept override { return loops_->dtype(); }
  [[nodiscard]] bool on_processor() const noexcept override { return false; }
  std::unique_ptr<Operation> make(const OperationSpec& operation, std::span<const TensorDesc> inputs,
                                  const OperationContext& context) override {
    auto made = loops_->make(operation, inputs, context);
    return made == nullptr ? nullptr : std::make_unique<QueuedOperation>(std::move(made));
  }
  std::unique_ptr<LossOperation> softmax_cross_entropy(const TensorDesc& outputs,
                                                       const CrossEntropySpec& spec) override {
    return std::make_unique<QueuedLoss>(loops_->softmax_cross_entropy(outputs, spec));
  }

 private:
  std::unique_ptr<Primitives> loops_;
};

struct QueuedLaunch {
  template <class Body>
  static void for_each(Stream& stream, std::int64_t count, const Body& body) {
    queue(stream, [count, body] {
      for (std::int64_t i = count; i-- > 0;) body(i);  // in any order
    });
  }
};

}  // namespace

void fake_gather(const gather::Rows& rows, Stream& stream) {
  queue(stream, [rows] {
    for (std::int64_t i = rows.count(); i-- > 0;) rows(i);  // in any order
  });
}

std::unique_ptr<Primitives> make_fake_primitives(DType dtype) {
  return std::make_unique<QueuedPrimitives>(dtype == DType::float32 ? make_reference_primitives()
                                                                    : make_rounded_primitives(dtype));
}

std::unique_ptr<Updater> make_fake_updater(DeviceContext& context, Optimizer& optimizer,
                                           const OptimizerBindings& bindings, const LayerArenas& layers,
                                           std::size_t count, const UpdaterOptions& options, Stream& stream) {
  return make_kernel_updater<QueuedLaunch>(context, optimizer, bindings, layers, count, options, stream);
}

}  // namespace ronda::test
