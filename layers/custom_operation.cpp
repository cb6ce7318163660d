#include <ronda/core/error.hpp>
#include <ronda/layers/custom_operation.hpp>

#include <string>
#include <utility>
#include <vector>

namespace ronda {
namespace {

class Adapter final : public Operation {
 public:
  Adapter(std::shared_ptr<const CustomOperation> custom, std::span<const TensorDesc> inputs,
          std::span<const TensorDesc> parameters, Mode mode)
      : custom_(std::move(custom)) {
    std::vector<Shape> shapes;
    for (const TensorDesc& input : inputs) {
      if (input.dtype != DType::float32 && input.dtype != DType::int32)
        throw InputError("the operation '" + std::string(custom_->kind()) + "' computes in float32, and is given " +
                         input.text());
      shapes.push_back(input.shape);
    }
    plan_.output = {custom_->output(shapes), DType::float32, {}};
    plan_.parameters.assign(parameters.begin(), parameters.end());
    (mode == Mode::training ? plan_.pass_bytes : plan_.scratch_bytes) = custom_->kept_bytes(shapes);
    plan_.picks = "a user's own";
    evaluating_ = mode == Mode::evaluation;
  }
  void bind(const OperationMemory& memory) override {
    memory_ = memory;
    if (evaluating_) memory_.pass = memory.scratch;
  }
  void forward(Inputs inputs, const Pass& pass) override { custom_->forward(CustomArguments(inputs, memory_), pass); }
  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    custom_->backward(CustomArguments(inputs, memory_, &output_gradient), pass);
    for (const Parameter* parameter : memory_.parameters) pass.on_ready(parameter->id, pass.stream);
  }

 private:
  std::shared_ptr<const CustomOperation> custom_;
  OperationMemory memory_;
  bool evaluating_ = false;
};

}  // namespace

std::unique_ptr<Operation> make_custom(std::shared_ptr<const CustomOperation> custom,
                                       std::span<const TensorDesc> inputs, std::span<const TensorDesc> parameters,
                                       Mode mode) {
  return std::make_unique<Adapter>(std::move(custom), inputs, parameters, mode);
}

}  // namespace ronda
