#include <ronda/core/buffer.hpp>
#include <ronda/core/number.hpp>
#include <ronda/layers/widened.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace ronda {
namespace {

bool is_half(DType dtype) { return dtype == DType::bfloat16 || dtype == DType::float16; }

/// A tensor of a half type, and where its numbers lie in float32: in scratch memory, for one call.
struct Wide {
  TensorDesc desc;  ///< float32
  std::size_t offset;
  [[nodiscard]] Tensor in(std::byte* scratch) const { return {desc, scratch + offset}; }
};

class WidenedOperation final : public Operation {
 public:
  WidenedOperation(std::unique_ptr<Operation> exact, std::span<const TensorDesc> inputs, DType half)
      : exact_(std::move(exact)) {
    plan_ = exact_->plan();
    plan_.in_place = plan_.in_halves = false;
    ArenaPlan arena;
    const auto place = [&](const TensorDesc& desc) {
      return Wide{widened(desc), arena.reserve(widened(desc).bytes())};
    };
    for (const TensorDesc& input : inputs) {
      const bool widens = is_half(input.dtype);
      x_.push_back(widens ? std::optional(place(input)) : std::nullopt);
      dx_.push_back(widens ? std::optional(place(input)) : std::nullopt);
    }
    y_ = place(plan_.output);
    dy_ = place(plan_.output);
    for (TensorDesc& parameter : plan_.parameters) {
      values_.push_back(place(parameter));
      gradients_.push_back(place(parameter));
      parameter.dtype = half;
    }
    plan_.output.dtype = half;
    exact_scratch_ = arena.bytes();
    plan_.scratch_bytes += exact_scratch_;
  }

  void bind(const OperationMemory& memory) override {
    memory_ = memory;
    given_.resize(x_.size());
    parameters_.clear();
    for (std::size_t i = 0; i < values_.size(); ++i) {
      parameters_.push_back(*memory.parameters[i]);
      parameters_.back().value = values_[i].in(memory.scratch);
      parameters_.back().gradient = gradients_[i].in(memory.scratch);
    }
    OperationMemory exact{.output = y_.in(memory.scratch),
                          .states = memory.states,
                          .pass = memory.pass,
                          .between = memory.between,
                          .scratch = memory.scratch + exact_scratch_};
    for (std::size_t i = 0; i < memory.input_gradients.size(); ++i)
      exact.input_gradients.push_back(memory.input_gradients[i].empty() || !dx_[i] ? memory.input_gradients[i]
                                                                                   : dx_[i]->in(memory.scratch));
    for (Parameter& parameter : parameters_) exact.parameters.push_back(&parameter);
    exact_->bind(exact);
  }

  void forward(Inputs inputs, const Pass& pass) override {
    widen(inputs, true);
    exact_->forward(given_, pass);
    convert(y_.in(memory_.scratch), memory_.output);
  }

  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    widen(inputs, plan_.backward_reads_inputs);
    if (plan_.backward_reads_output) convert(memory_.output, y_.in(memory_.scratch));
    const Tensor dy = dy_.in(memory_.scratch);
    convert(output_gradient, dy);
    Pass quiet = pass;
    quiet.on_ready = {};
    exact_->backward(given_, dy, quiet);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      convert(parameters_[i].gradient, memory_.parameters[i]->gradient);
      pass.on_ready(parameters_[i].id, pass.stream);
    }
    const std::size_t written = plan_.gradients == InputGradients::common ? 1 : dx_.size();
    for (std::size_t i = 0; i < written; ++i)
      if (dx_[i] && !memory_.input_gradients[i].empty())
        convert(dx_[i]->in(memory_.scratch), memory_.input_gradients[i]);
  }

 private:
  void widen(Inputs inputs, bool reads_inputs) {
    for (std::size_t i = 0; i < x_.size(); ++i) {
      given_[i] = x_[i] ? x_[i]->in(memory_.scratch) : inputs[i];
      if (x_[i] && reads_inputs) convert(inputs[i], given_[i]);
    }
    for (std::size_t i = 0; i < parameters_.size(); ++i) convert(memory_.parameters[i]->value, parameters_[i].value);
  }

  std::unique_ptr<Operation> exact_;
  std::vector<std::optional<Wide>> x_, dx_;  ///< empty: an input of another type
  Wide y_, dy_;
  std::vector<Wide> values_, gradients_;
  std::size_t exact_scratch_ = 0;
  OperationMemory memory_;
  std::vector<Tensor> given_;
  std::vector<Parameter> parameters_;
};

class WidenedLoss final : public LossOperation {
 public:
  WidenedLoss(std::unique_ptr<LossOperation> exact, const TensorDesc& outputs)
      : exact_(std::move(exact)), wide_(widened(outputs)) {
    ArenaPlan arena;
    outputs_ = arena.reserve(wide_.bytes());
    gradient_ = arena.reserve(wide_.bytes());
    exact_scratch_ = arena.bytes();
  }
  [[nodiscard]] std::size_t scratch_bytes() const noexcept override { return exact_scratch_ + exact_->scratch_bytes(); }
  void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte* scratch,
           const Pass& pass) override {
    Pass scaled = pass;
    if (pass.more_scale != nullptr) scaled.loss_scale *= *pass.more_scale;
    scaled.more_scale = nullptr;
    const Tensor x(wide_, scratch + outputs_), dx(wide_, scratch + gradient_);
    convert(outputs, x);
    exact_->run(x, target, dx, scratch + exact_scratch_, scaled);
    convert(dx, gradient);
  }

 private:
  std::unique_ptr<LossOperation> exact_;
  TensorDesc wide_;
  std::size_t outputs_, gradient_, exact_scratch_;
};

}  // namespace

TensorDesc widened(const TensorDesc& desc) {
  return {desc.shape, is_half(desc.dtype) ? DType::float32 : desc.dtype, desc.layout};
}

std::unique_ptr<Operation> widened(std::unique_ptr<Operation> exact, std::span<const TensorDesc> inputs, DType half) {
  return std::make_unique<WidenedOperation>(std::move(exact), inputs, half);
}

std::unique_ptr<LossOperation> widened(std::unique_ptr<LossOperation> exact, const TensorDesc& outputs) {
  return std::make_unique<WidenedLoss>(std::move(exact), outputs);
}

}  // namespace ronda
