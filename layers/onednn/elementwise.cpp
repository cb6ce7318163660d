#include <ronda/core/error.hpp>
#include <ronda/layers/onednn/gelu.hpp>
#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/onednn/memory_desc.hpp>
#include <ronda/layers/onednn/operations.hpp>

#include <array>

namespace ronda::onednn {
namespace {

/// A function and its gradient, by loops of our own over so many elements.
template <LayerNumber T>
struct Loops {
  void (*forward)(const T* x, T* y, std::size_t count, int threads);
  void (*backward)(const T* dy, const T* kept, T* dx, std::size_t count, int threads);
  bool backward_reads_input;  ///< as `kept`, rather than the output
};

/// On the stored elements in their order, padding included, which stays 0: no layout is needed.
template <LayerNumber T>
class LoopFunction final : public Operation {
 public:
  LoopFunction(const Runtime& runtime, const TensorDesc& input, const Loops<T>& loops)
      : loops_(loops), threads_(runtime.threads), count_(static_cast<std::size_t>(input.padded_count())) {
    plan_ = plan_of_function(input, loops.backward_reads_input, "our loops");
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass&) override {
    loops_.forward(inputs.front().pointer<const T>(), memory_.output.pointer<T>(), count_, threads_);
  }
  void backward(Inputs inputs, const Tensor& output_gradient, const Pass&) override {
    if (memory_.input_gradient().empty()) return;
    const Tensor& kept = loops_.backward_reads_input ? inputs.front() : memory_.output;
    loops_.backward(output_gradient.pointer<const T>(), kept.pointer<const T>(), memory_.input_gradient().pointer<T>(),
                    count_, threads_);
  }

 private:
  Loops<T> loops_;
  int threads_;
  std::size_t count_;
  OperationMemory memory_;
};

template <LayerNumber T>
void relu_or_rectify(const T* x, T* y, std::size_t count, int threads) {
  if (x == y)
    rectify(y, count, threads);
  else
    relu(x, y, count, threads);
}

/// The library's name for a function.
struct LibraryAlgorithm {
  dnnl::algorithm forward, backward;
  bool backward_reads_input;  ///< rather than the output
  float alpha = 0;
};

/// By the library, on the stored elements in their order; f(0) = 0 or there is no padding, so padding stays zero.
class LibraryFunction final : public Operation {
 public:
  LibraryFunction(const Runtime& runtime, const TensorDesc& input, const LibraryAlgorithm& algorithm)
      : count_(plain_layout({input.padded_count()}, Axes::weight, input.dtype)),
        forward_description_(adapter::eltwise_forward(runtime.engine, algorithm.forward, count_, algorithm.alpha)),
        forward_(runtime, dnnl::eltwise_forward(forward_description_),
                 std::array{Kernel::Argument{DNNL_ARG_SRC, count_}, Kernel::Argument{DNNL_ARG_DST, count_}}),
        backward_(
            runtime,
            dnnl::eltwise_backward(adapter::eltwise_backward(runtime.engine, algorithm.backward, count_,
                                                             algorithm.alpha, forward_description_)),
            std::array{Kernel::Argument{algorithm.backward_reads_input ? DNNL_ARG_SRC : DNNL_ARG_DST, count_},
                       Kernel::Argument{DNNL_ARG_DIFF_DST, count_}, Kernel::Argument{DNNL_ARG_DIFF_SRC, count_}}) {
    plan_ = plan_of_function(input, algorithm.backward_reads_input, forward_description_.impl_info_str());
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass&) override {
    forward_.run(std::array<void*, 2>{inputs.front().data(), memory_.output.data()});
  }
  void backward(Inputs inputs, const Tensor& output_gradient, const Pass&) override {
    if (memory_.input_gradient().empty()) return;
    const Tensor& kept = plan_.backward_reads_inputs ? inputs.front() : memory_.output;
    backward_.run(std::array<void*, 3>{kept.data(), output_gradient.data(), memory_.input_gradient().data()});
  }

 private:
  dnnl::memory::desc count_;
  dnnl::eltwise_forward::primitive_desc forward_description_;
  Kernel forward_, backward_;
  OperationMemory memory_;
};

/// As above: padding is zero, and so is a sum of it.
template <LayerNumber T>
class Add final : public Operation {
 public:
  Add(const Runtime& runtime, std::span<const TensorDesc> inputs, const AddSpec& spec)
      : threads_(runtime.threads),
        relu_(spec.activation == Activation::relu),
        count_(static_cast<std::size_t>(inputs.front().padded_count())) {
    plan_ = plan_of_sum(inputs, spec, "our loops");
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass&) override {
    auto* y = memory_.output.pointer<T>();
    const auto add_to = [&](const T* sum, const Tensor& term) {
      add(sum, term.pointer<const T>(), y, count_, threads_);
    };
    add_to(inputs[0].pointer<const T>(), inputs[1]);
    for (const Tensor& input : inputs.subspan(2)) add_to(y, input);
    if (relu_) rectify(y, count_, threads_);
  }
  void backward(Inputs, const Tensor& output_gradient, const Pass&) override {
    relu_backward(output_gradient.pointer<const T>(), memory_.output.pointer<const T>(),
                  memory_.input_gradient().pointer<T>(), count_, threads_);
  }

 private:
  int threads_;
  bool relu_;
  std::size_t count_;
  OperationMemory memory_;
};

class Reorder final : public Operation {
 public:
  Reorder(const Runtime& runtime, const TensorDesc& from, const TensorDesc& to)
      : forward_(make_reorder(runtime, to_memory_desc(from, Axes::image), to_memory_desc(to, Axes::image))),
        backward_(make_reorder(runtime, to_memory_desc(to, Axes::image), to_memory_desc(from, Axes::image))) {
    if (from.shape != to.shape) throw LogicError("cannot copy " + from.text() + " to " + to.text());
    plan_.output = to;
    plan_.backward_reads_inputs = plan_.backward_reads_output = false;
    plan_.picks = "reorder " + from.layout.tag() + " to " + to.layout.tag();
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass&) override {
    forward_.run(std::array<void*, 2>{inputs.front().data(), memory_.output.data()});
  }
  void backward(Inputs, const Tensor& output_gradient, const Pass&) override {
    if (memory_.input_gradient().empty()) return;
    backward_.run(std::array<void*, 2>{output_gradient.data(), memory_.input_gradient().data()});
  }

 private:
  Kernel forward_, backward_;
  OperationMemory memory_;
};

}  // namespace

/// Not the library's, which makes 0 of NaN.
std::unique_ptr<Operation> make_relu(const Runtime& runtime, const TensorDesc& input) {
  return with_layer_number(input.dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Operation> {
    return std::make_unique<LoopFunction<T>>(runtime, input, Loops<T>{relu_or_rectify<T>, relu_backward<T>, false});
  });
}
std::unique_ptr<Operation> make_elementwise(const Runtime& runtime, const TensorDesc& input,
                                            const ElementwiseSpec& spec) {
  using dnnl::algorithm;
  const auto library = [&](const LibraryAlgorithm& function) {
    return std::make_unique<LibraryFunction>(runtime, input, function);
  };
  switch (spec.function) {
    case ElementwiseFunction::relu: return make_relu(runtime, input);
    case ElementwiseFunction::gelu:
      if (input.dtype == DType::float32)
        return std::make_unique<LoopFunction<float>>(runtime, input, Loops<float>{gelu, gelu_backward, true});
      return library({algorithm::eltwise_gelu_erf, algorithm::eltwise_gelu_erf, true});
    case ElementwiseFunction::silu: return library({algorithm::eltwise_swish, algorithm::eltwise_swish, true, 1});
    case ElementwiseFunction::mish: return library({algorithm::eltwise_mish, algorithm::eltwise_mish, true});
    case ElementwiseFunction::tanh:
      return library({algorithm::eltwise_tanh, algorithm::eltwise_tanh_use_dst_for_bwd, false});
    case ElementwiseFunction::sigmoid:
      return library({algorithm::eltwise_logistic, algorithm::eltwise_logistic_use_dst_for_bwd, false});
  }
  return nullptr;  // then the plain loops'
}
std::unique_ptr<Operation> make_add(const Runtime& runtime, std::span<const TensorDesc> inputs, const AddSpec& spec) {
  return with_layer_number(inputs.front().dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Operation> {
    return std::make_unique<Add<T>>(runtime, inputs, spec);
  });
}
std::unique_ptr<Operation> make_reorder(const Runtime& runtime, const TensorDesc& from, const TensorDesc& to) {
  return std::make_unique<Reorder>(runtime, from, to);
}

}  // namespace ronda::onednn
