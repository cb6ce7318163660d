#include "support/rounded_primitives.hpp"

#include <array>
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
  RoundedOperation(std::unique_ptr<Operation> loops, const TensorDesc& input, DType dtype)
      : loops_(std::move(loops)), x_(input), dx_(input), y_(loops_->plan().output), dy_(loops_->plan().output) {
    plan_ = loops_->plan();
    plan_.output = in(dtype, plan_.output);
    for (auto& parameter : plan_.parameters) {
      parameter = in(dtype, parameter);
      values_.emplace_back(parameter);
      gradients_.emplace_back(parameter);
    }
  }

  void bind(const OperationMemory& memory) override {
    memory_ = memory;
    OperationMemory wide{.output = y_.tensor,
                         .input_gradient = memory.input_gradient.empty() ? Tensor() : dx_.tensor,
                         .pass = memory.pass,
                         .scratch = memory.scratch};
    for (std::size_t i = 0; i < values_.size(); ++i) {
      parameters_[i] = {
          memory.parameters[i]->id, memory.parameters[i]->name, values_[i].tensor, gradients_[i].tensor, {}, {}};
      wide.parameters[i] = &parameters_[i];
    }
    loops_->bind(wide);
  }
  void forward(const Tensor& input, const Pass& pass) override {
    convert(input, x_.tensor);
    for (std::size_t i = 0; i < values_.size(); ++i) convert(memory_.parameters[i]->value, values_[i].tensor);
    loops_->forward(x_.tensor, pass);
    convert(y_.tensor, memory_.output);
    convert(memory_.output, y_.tensor);
  }
  void backward(const Tensor&, const Tensor& output_gradient, const Pass& pass) override {
    convert(output_gradient, dy_.tensor);
    Pass quiet = pass;
    quiet.on_ready = {};
    loops_->backward(x_.tensor, dy_.tensor, quiet);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      convert(gradients_[i].tensor, memory_.parameters[i]->gradient);
      pass.on_ready(memory_.parameters[i]->id, pass.stream);
    }
    if (!memory_.input_gradient.empty()) convert(dx_.tensor, memory_.input_gradient);
  }

 private:
  std::unique_ptr<Operation> loops_;
  Wide x_, dx_, y_, dy_;
  std::vector<Wide> values_, gradients_;
  std::array<Parameter, 2> parameters_;
  OperationMemory memory_;
};

class Conversion final : public Operation {
 public:
  explicit Conversion(const TensorDesc& to) { plan_.output = to; }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(const Tensor& input, const Pass&) override { convert(input, memory_.output); }
  void backward(const Tensor&, const Tensor& output_gradient, const Pass&) override {
    if (!memory_.input_gradient.empty()) convert(output_gradient, memory_.input_gradient);
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
  std::unique_ptr<Operation> dense(const DenseSpec& spec, const OperationContext& context) override {
    DenseSpec wide = spec;
    wide.input = in(DType::float32, spec.input);
    return rounded(loops_->dense(wide, context), spec.input);
  }
  std::unique_ptr<Operation> convolution(const ConvolutionSpec& spec, const OperationContext& context) override {
    ConvolutionSpec wide = spec;
    wide.input = in(DType::float32, spec.input);
    return rounded(loops_->convolution(wide, context), spec.input);
  }
  std::unique_ptr<Operation> pool(const TensorDesc& input, const PoolSpec& spec,
                                  const OperationContext& context) override {
    return rounded(loops_->pool(in(DType::float32, input), spec, context), input);
  }
  std::unique_ptr<Operation> relu(const TensorDesc& input, const OperationContext& context) override {
    return rounded(loops_->relu(in(DType::float32, input), context), input);
  }
  std::unique_ptr<Operation> reorder(const TensorDesc&, const TensorDesc& to, const OperationContext&) override {
    return std::make_unique<Conversion>(to);
  }
  std::unique_ptr<LossOperation> softmax_cross_entropy(const TensorDesc& outputs, float smoothing) override {
    return std::make_unique<RoundedLoss>(loops_->softmax_cross_entropy(in(DType::float32, outputs), smoothing),
                                         outputs);
  }

 private:
  [[nodiscard]] std::unique_ptr<Operation> rounded(std::unique_ptr<Operation> loops, const TensorDesc& input) const {
    return std::make_unique<RoundedOperation>(std::move(loops), input, dtype_);
  }

  DType dtype_;
  std::unique_ptr<Primitives> loops_ = make_reference_primitives();
};

}  // namespace

std::unique_ptr<Primitives> make_rounded_primitives(DType dtype) { return std::make_unique<RoundedPrimitives>(dtype); }

}  // namespace ronda::test
