// Operations that are kernels of our own and nothing else.
#include <ronda/layers/cudnn/geometry.hpp>
#include <ronda/layers/cudnn/kernels.hpp>
#include <ronda/layers/cudnn/library.hpp>
#include <ronda/layers/feature_reorder.hpp>

namespace ronda::cudnn {
namespace {

template <Number T>
class Pooling final : public Operation {
 public:
  Pooling(const TensorDesc& input, const PoolSpec& spec) : input_(input), geometry_(geometry(input.shape, spec)) {
    require_plain(input, dtype_of<T>, "a pooling");
    plan_.output = {pool_output(input.shape, spec), dtype_of<T>, {}};
    plan_.picks = "kernel";
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(const Tensor& input, const Pass& pass) override {
    launch(pass.stream, plan_.output.count(), Pool<T>{geometry_, input.pointer<T>(), memory_.output.pointer<T>()});
  }
  void backward(const Tensor& input, const Tensor& output_gradient, const Pass& pass) override {
    if (memory_.input_gradient.empty()) return;
    launch(pass.stream, input_.count(),
           PoolGradient<T>{geometry_, input.pointer<T>(), output_gradient.pointer<T>(),
                           memory_.input_gradient.pointer<T>(), false});
  }

 private:
  TensorDesc input_;
  PoolGeometry geometry_;
  OperationMemory memory_;
};

template <Number T>
class ReluOperation final : public Operation {
 public:
  explicit ReluOperation(const TensorDesc& input) {
    require_plain(input, dtype_of<T>, "a ReLU");
    plan_.output = input;
    plan_.picks = "kernel";
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(const Tensor& input, const Pass& pass) override {
    launch(pass.stream, plan_.output.count(), Relu<T>{input.pointer<T>(), memory_.output.pointer<T>()});
  }
  void backward(const Tensor&, const Tensor& output_gradient, const Pass& pass) override {
    if (memory_.input_gradient.empty()) return;
    launch(pass.stream, plan_.output.count(),
           ReluGradient<T>{memory_.output.pointer<T>(), output_gradient.pointer<T>(),
                           memory_.input_gradient.pointer<T>()});
  }

 private:
  OperationMemory memory_;
};

template <Number From, Number To>
class Conversion final : public Operation {
 public:
  explicit Conversion(const TensorDesc& input) {
    plan_.output = {input.shape, dtype_of<To>, {}};
    plan_.picks = "kernel";
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(const Tensor& input, const Pass& pass) override {
    launch(pass.stream, plan_.output.count(), Convert<From, To>{input.pointer<From>(), memory_.output.pointer<To>()});
  }
  void backward(const Tensor&, const Tensor& output_gradient, const Pass& pass) override {
    if (memory_.input_gradient.empty()) return;
    launch(pass.stream, plan_.output.count(),
           Convert<To, From>{output_gradient.pointer<To>(), memory_.input_gradient.pointer<From>()});
  }

 private:
  OperationMemory memory_;
};

template <Number T>
class Transposition final : public Operation {
 public:
  explicit Transposition(const TensorDesc& image)
      : pixels_(image.shape[1] * image.shape[2]), channels_(image.shape[3]) {
    plan_.output = logical_order_of(image);
    plan_.picks = "kernel";
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(const Tensor& input, const Pass& pass) override {
    launch(pass.stream, plan_.output.count(),
           Transpose<T>{input.pointer<T>(), memory_.output.pointer<T>(), pixels_, channels_});
  }
  void backward(const Tensor&, const Tensor& output_gradient, const Pass& pass) override {
    if (memory_.input_gradient.empty()) return;
    launch(pass.stream, plan_.output.count(),
           Transpose<T>{output_gradient.pointer<T>(), memory_.input_gradient.pointer<T>(), channels_, pixels_});
  }

 private:
  std::int64_t pixels_, channels_;
  OperationMemory memory_;
};

template <Number T>
class SoftmaxCrossEntropyOperation final : public LossOperation {
 public:
  SoftmaxCrossEntropyOperation(const TensorDesc& outputs, float smoothing)
      : rows_(outputs.shape[0]), classes_(outputs.shape[1]), smoothing_(smoothing) {}
  [[nodiscard]] std::size_t scratch_bytes() const noexcept override {
    return static_cast<std::size_t>(2 * rows_) * sizeof(double);
  }
  void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte* scratch,
           const Pass& pass) override {
    auto* losses = reinterpret_cast<double*>(scratch);
    const float* weights = pass.weights->pointer<float>();
    launch_teams(pass.stream, rows_,
                 SoftmaxRow<T>{outputs.pointer<T>(), target.pointer<std::int32_t>(), weights, gradient.pointer<T>(),
                               losses, classes_, smoothing_, pass.loss_scale, pass.more_scale});
    launch_teams(pass.stream, 1, SumLosses{losses, weights, rows_, pass.control});
  }

 private:
  std::int64_t rows_, classes_;
  float smoothing_;
};

}  // namespace

std::unique_ptr<Operation> make_pool(DType dtype, const TensorDesc& input, const PoolSpec& spec) {
  return with_number(dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Operation> {
    return std::make_unique<Pooling<T>>(input, spec);
  });
}

std::unique_ptr<Operation> make_relu(DType dtype, const TensorDesc& input) {
  return with_number(dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Operation> {
    return std::make_unique<ReluOperation<T>>(input);
  });
}

std::unique_ptr<Operation> make_transposition(DType dtype, const TensorDesc& image) {
  return with_number(dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Operation> {
    return std::make_unique<Transposition<T>>(image);
  });
}

std::unique_ptr<Operation> make_conversion(DType dtype, const TensorDesc& from, const TensorDesc& to) {
  const TensorDesc single{from.shape, DType::float32, {}}, ours{from.shape, dtype, {}};
  const bool towards = same_bytes(from, single) && to == ours, back = same_bytes(from, ours) && to == single;
  if (dtype != DType::float32 && (towards || back))
    return with_number(dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Operation> {
      if constexpr (!std::is_same_v<T, float>) {
        if (towards) return std::make_unique<Conversion<float, T>>(from);
        return std::make_unique<Conversion<T, float>>(from);
      }
      return nullptr;
    });
  throw LogicError("this GPU has no reorder from " + from.text() + " to " + to.text());
}

std::unique_ptr<LossOperation> make_softmax_cross_entropy(DType dtype, const TensorDesc& outputs, float smoothing) {
  return with_number(dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<LossOperation> {
    return std::make_unique<SoftmaxCrossEntropyOperation<T>>(outputs, smoothing);
  });
}

}  // namespace ronda::cudnn
