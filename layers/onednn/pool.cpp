#include <ronda/core/error.hpp>
#include <ronda/layers/onednn/operations.hpp>
#include <ronda/layers/onednn/pooling.hpp>

namespace ronda::onednn {
namespace {

/// Keeps the places of the maxima from forward to backward.
template <LayerNumber T>
class Pool final : public Operation {
 public:
  Pool(const Runtime& runtime, const Images& images, const TensorDesc& output, const PoolSpec& spec, Mode mode)
      : threads_(runtime.threads), kept_(mode == Mode::training), pooling_(spec, images, output.shape) {
    plan_.output = output;
    (kept_ ? plan_.pass_bytes : plan_.scratch_bytes) = pooling_.winner_bytes();
    if (kept_) plan_.scratch_bytes = pooling_.scratch_bytes(output.dtype, threads_);
    plan_.picks = "our loops";
    plan_.backward_reads_inputs = plan_.backward_reads_output = false;
  }
  void bind(const OperationMemory& memory) override {
    memory_ = memory;
    winners_ = kept_ ? memory.pass : memory.scratch;
  }
  void forward(Inputs inputs, const Pass&) override {
    const Tensor& input = inputs.front();
    pooling_.forward(input.pointer<const T>(), memory_.output.pointer<T>(), winners_, threads_);
  }
  void backward(Inputs, const Tensor& output_gradient, const Pass&) override {
    if (memory_.input_gradient().empty()) return;
    pooling_.backward(output_gradient.pointer<const T>(), winners_, memory_.input_gradient().pointer<T>(),
                      memory_.scratch, threads_);
  }

 private:
  int threads_;
  bool kept_;
  Pooling pooling_;
  OperationMemory memory_;
  std::byte* winners_ = nullptr;
};

}  // namespace

std::unique_ptr<Operation> make_pool(const Runtime& runtime, const TensorDesc& input, const PoolSpec& spec,
                                     const OperationContext& context) {
  const TensorDesc output{pool_output(input.shape, spec), input.dtype, input.layout};
  const auto images = images_of(input), pooled = images_of(output);
  if (!images || !pooled || pooled->lanes != images->lanes)
    throw LogicError("pooling cannot walk the layout of " + input.text());
  return with_layer_number(input.dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Operation> {
    return std::make_unique<Pool<T>>(runtime, *images, output, spec, context.mode);
  });
}

}  // namespace ronda::onednn
