#include "support/rounded_primitives.hpp"

#include <deque>
#include <span>
#include <utility>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/number.hpp>

namespace ronda::test {
namespace {

TensorDesc in(DType dtype, const TensorDesc& desc) { return {desc.shape, dtype, desc.layout}; }

/// float32 memory beside a tensor of another type.
struct Wide {
  explicit Wide(const TensorDesc& desc)
      : memory(Buffer::host(in(DType::float32, desc).bytes())), tensor(in(DType::float32, desc), memory.data()) {}
  Buffer memory;
  Tensor tensor;
};

class RoundedOperation final : public Operation {
 public:
  RoundedOperation(std::unique_ptr<Operation> loops, std::span<const TensorDesc> inputs, DType dtype)
      : loops_(std::move(loops)), y_(loops_->plan().output), dy_(loops_->plan().output) {
    plan_ = loops_->plan();
    plan_.in_halves = false;
    plan_.output = in(dtype, plan_.output);
    for (const TensorDesc& input : inputs) {
      x_.push_back(wide(input));
      dx_.push_back(wide(input));
    }
    for (auto& parameter : plan_.parameters) {
      parameter = in(dtype, parameter);
      values_.emplace_back(parameter);
      gradients_.emplace_back(parameter);
    }
  }

  void bind(const OperationMemory& memory) override {
    memory_ = memory;
    parameters_.clear();
    OperationMemory wide{.output = y_.tensor,
                         .states = memory.states,
                         .pass = memory.pass,
                         .between = memory.between,
                         .scratch = memory.scratch};
    for (std::size_t i = 0; i < dx_.size(); ++i)
      wide.input_gradients.push_back(memory.input_gradients[i].empty() ? Tensor() : dx_[i]);
    for (std::size_t i = 0; i < values_.size(); ++i)
      parameters_.push_back(
          {memory.parameters[i]->id, memory.parameters[i]->name, values_[i].tensor, gradients_[i].tensor, {}, {}});
    for (Parameter& parameter : parameters_) wide.parameters.push_back(&parameter);
    loops_->bind(wide);
  }
  void forward(Inputs inputs, const Pass& pass) override {
    for (std::size_t i = 0; i < x_.size(); ++i) convert(inputs[i], x_[i]);
    for (std::size_t i = 0; i < values_.size(); ++i) convert(memory_.parameters[i]->value, values_[i].tensor);
    loops_->forward(x_, pass);
    convert(y_.tensor, memory_.output);
    convert(memory_.output, y_.tensor);
  }
  void backward(Inputs, const Tensor& output_gradient, const Pass& pass) override {
    convert(output_gradient, dy_.tensor);
    Pass quiet = pass;
    quiet.on_ready = {};
    loops_->backward(x_, dy_.tensor, quiet);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      convert(gradients_[i].tensor, memory_.parameters[i]->gradient);
      pass.on_ready(memory_.parameters[i]->id, pass.stream);
    }
    const std::size_t written = plan_.gradients == InputGradients::common ? 1 : dx_.size();
    for (std::size_t i = 0; i < written; ++i)
      if (!memory_.input_gradients[i].empty()) convert(dx_[i], memory_.input_gradients[i]);
  }

 private:
  Tensor wide(const TensorDesc& desc) { return inputs_.emplace_back(desc).tensor; }

  std::unique_ptr<Operation> loops_;
  std::deque<Wide> inputs_;
  std::vector<Tensor> x_, dx_;
  Wide y_, dy_;
  std::vector<Wide> values_, gradients_;
  std::vector<Parameter> parameters_;
  OperationMemory memory_;
};

class Conversion final : public Operation {
 public:
  explicit Conversion(const TensorDesc& to) { plan_.output = to; }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass&) override { convert(inputs.front(), memory_.output); }
  void backward(Inputs, const Tensor& output_gradient, const Pass&) override {
    if (!memory_.input_gradient().empty()) convert(output_gradient, memory_.input_gradient());
  }

 private:
  OperationMemory memory_;
};

class RoundedLoss final : public LossOperation {
 public:
  RoundedLoss(std::unique_ptr<LossOperation> loops, const TensorDesc& outputs)
      : loops_(std::move(loops)), x_(outputs), dx_(outputs) {}
  [[nodiscard]] std::size_t scratch_bytes() const noexcept override { return loops_->scratch_bytes(); }
  void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte* scratch,
           const Pass& pass) override {
    Pass scaled = pass;
    if (pass.more_scale != nullptr) scaled.loss_scale *= *pass.more_scale;
    convert(outputs, x_.tensor);
    loops_->run(x_.tensor, target, dx_.tensor, scratch, scaled);
    convert(dx_.tensor, gradient);
  }

 private:
  std::unique_ptr<LossOperation> loops_;
  Wide x_, dx_;
};

class RoundedPrimitives final : public Primitives {
 public:
  explicit RoundedPrimitives(DType dtype) : dtype_(dtype) {}
  [[nodiscard]] std::string name() const override { return loops_->name() + " in " + std::string(name_of(dtype_)); }
  [[nodiscard]] DType dtype() const noexcept override { return dtype_; }
  std::unique_ptr<Operation> make(const OperationSpec& operation, std::span<const TensorDesc> inputs,
                                  const OperationContext& context) override {
    if (const auto* reorder = std::get_if<ReorderSpec>(&operation)) return std::make_unique<Conversion>(reorder->to);
    std::vector<TensorDesc> wide;
    for (const TensorDesc& input : inputs) wide.push_back(in(DType::float32, input));
    auto loops = loops_->make(operation, wide, context);
    return loops == nullptr ? nullptr : std::make_unique<RoundedOperation>(std::move(loops), inputs, dtype_);
  }
  std::unique_ptr<LossOperation> softmax_cross_entropy(const TensorDesc& outputs,
                                                       const CrossEntropySpec& spec) override {
    if (outputs.dtype == DType::float32) return loops_->softmax_cross_entropy(outputs, spec);
    return std::make_unique<RoundedLoss>(loops_->softmax_cross_entropy(in(DType::float32, outputs), spec), outputs);
  }

 private:
  DType dtype_;
  std::unique_ptr<Primitives> loops_ = make_reference_primitives();
};

}  // namespace

std::unique_ptr<Primitives> make_rounded_primitives(DType dtype) { return std::make_unique<RoundedPrimitives>(dtype); }

}  // namespace ronda::test
