// Operations that are kernels of our own and nothing else.
#include <ronda/layers/activation_layouts.hpp>
#include <ronda/layers/cudnn/geometry.hpp>
#include <ronda/layers/cudnn/kernels.hpp>
#include <ronda/layers/cudnn/library.hpp>

namespace ronda::cudnn {
namespace {

template <Number T>
class Pooling final : public Operation {
 public:
  Pooling(const TensorDesc& input, const PoolSpec& spec) : input_(input), geometry_(geometry(input.shape, spec)) {
    require_plain(input, dtype_of<T>, "a pooling");
    plan_.output = {pool_output(input.shape, spec), dtype_of<T>, {}};
    plan_.picks = "kernel";
    plan_.backward_reads_output = false;
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass& pass) override {
    const Tensor& input = inputs.front();
    pool(pass.stream, geometry_, input_.shape[0], static_cast<const T*>(input.pointer<T>()),
         memory_.output.pointer<T>(), false);
  }
  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    const Tensor& input = inputs.front();
    if (memory_.input_gradient().empty()) return;
    pool_gradient(pass.stream, geometry_, input_.shape[0], static_cast<const T*>(input.pointer<T>()),
                  static_cast<const T*>(output_gradient.pointer<T>()), memory_.input_gradient().pointer<T>(), false);
  }

 private:
  TensorDesc input_;
  PoolGeometry geometry_;
  OperationMemory memory_;
};

template <class Row, Number T>
class ElementwiseOperation final : public Operation {
 public:
  explicit ElementwiseOperation(const TensorDesc& input) {
    require_plain(input, dtype_of<T>, "a function of each element");
    plan_ = plan_of_function(input, Row::backward_reads_input, "kernel");
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass& pass) override {
    launch(pass.stream, plan_.output.count(),
           Elementwise<Row, T>{inputs.front().pointer<T>(), memory_.output.pointer<T>()});
  }
  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    if (memory_.input_gradient().empty()) return;
    const Tensor& kept = Row::backward_reads_input ? inputs.front() : memory_.output;
    launch(pass.stream, plan_.output.count(),
           ElementwiseGradient<Row, T>{kept.pointer<T>(), output_gradient.pointer<T>(),
                                       memory_.input_gradient().pointer<T>()});
  }

 private:
  OperationMemory memory_;
};

template <Number T>
class AddOperation final : public Operation {
 public:
  AddOperation(std::span<const TensorDesc> inputs, const AddSpec& spec) : relu_(spec.activation == Activation::relu) {
    for (const TensorDesc& input : inputs) require_plain(input, dtype_of<T>, "an addition");
    plan_ = plan_of_sum(inputs, spec, "kernel");
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass& pass) override {
    T* y = memory_.output.pointer<T>();
    const T* sum = inputs.front().pointer<T>();
    for (std::size_t i = 1; i < inputs.size(); ++i, sum = y)
      launch(pass.stream, plan_.output.count(),
             Add<T>{sum, inputs[i].pointer<T>(), y, relu_ && i + 1 == inputs.size()});
  }
  void backward(Inputs, const Tensor& output_gradient, const Pass& pass) override {
    launch(pass.stream, plan_.output.count(),
           ReluGradient<T>{memory_.output.pointer<T>(), output_gradient.pointer<T>(),
                           memory_.input_gradient().pointer<T>()});
  }

 private:
  bool relu_;
  OperationMemory memory_;
};

template <Number T>
class ConcatOperation final : public Operation {
 public:
  ConcatOperation(std::span<const TensorDesc> inputs, const ConcatSpec& spec)
      : columns_(columns_of(inputs, spec, "kernels")) {
    for (const TensorDesc& input : inputs) require_plain(input, dtype_of<T>, "a concatenation");
    plan_ = columns_.plan;
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass& pass) override {
    each([&](std::size_t i, std::int64_t width, std::int64_t place) {
      launch(pass.stream, columns_.rows * width,
             CopyColumns<T>{inputs[i].pointer<T>(), memory_.output.pointer<T>() + place, width, width, columns_.whole});
    });
  }
  void backward(Inputs, const Tensor& output_gradient, const Pass& pass) override {
    each([&](std::size_t i, std::int64_t width, std::int64_t place) {
      const Tensor& gradient = memory_.input_gradients[i];
      if (gradient.empty()) return;
      launch(pass.stream, columns_.rows * width,
             CopyColumns<T>{output_gradient.pointer<T>() + place, gradient.pointer<T>(), width, columns_.whole, width});
    });
  }

 private:
  /// body(input, its width, its place in the output's rows)
  template <class Body>
  void each(Body body) const {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < columns_.widths.size(); place += columns_.widths[i++])
      body(i, columns_.widths[i], place);
  }

  Columns columns_;
  OperationMemory memory_;
};

template <Number From, Number To>
class Conversion final : public Operation {
 public:
  explicit Conversion(const TensorDesc& input) {
    plan_.output = {input.shape, dtype_of<To>, {}};
    plan_.picks = "kernel";
    plan_.backward_reads_inputs = plan_.backward_reads_output = false;
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass& pass) override {
    const Tensor& input = inputs.front();
    launch(pass.stream, plan_.output.count(), Convert<From, To>{input.pointer<From>(), memory_.output.pointer<To>()});
  }
  void backward(Inputs, const Tensor& output_gradient, const Pass& pass) override {
    if (memory_.input_gradient().empty()) return;
    launch(pass.stream, plan_.output.count(),
           Convert<To, From>{output_gradient.pointer<To>(), memory_.input_gradient().pointer<From>()});
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
    plan_.backward_reads_inputs = plan_.backward_reads_output = false;
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass& pass) override {
    const Tensor& input = inputs.front();
    launch(pass.stream, plan_.output.count(),
           Transpose<T>{input.pointer<T>(), memory_.output.pointer<T>(), pixels_, channels_});
  }
  void backward(Inputs, const Tensor& output_gradient, const Pass& pass) override {
    if (memory_.input_gradient().empty()) return;
    launch(pass.stream, plan_.output.count(),
           Transpose<T>{output_gradient.pointer<T>(), memory_.input_gradient().pointer<T>(), channels_, pixels_});
  }

 private:
  std::int64_t pixels_, channels_;
  OperationMemory memory_;
};

template <Number T>
class SoftmaxCrossEntropyOperation final : public LossOperation {
 public:
  SoftmaxCrossEntropyOperation(const Shape& outputs, const CrossEntropySpec& spec)
      : classes_(outputs[outputs.rank() - 1]),
        rows_of_sample_(outputs.without_batch().count() / classes_),
        rows_(outputs[0] * rows_of_sample_),
        smoothing_(spec.smoothing),
        ignore_index_(spec.ignore_index) {}
  [[nodiscard]] std::size_t scratch_bytes() const noexcept override {
    return static_cast<std::size_t>(3 * (rows_ + loss_parts(rows_))) * sizeof(double);
  }
  void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte* scratch,
           const Pass& pass) override {
    auto* sums = reinterpret_cast<double*>(scratch);
    launch_teams(pass.stream, rows_,
                 SoftmaxRow<T>{outputs.pointer<T>(), target.pointer<std::int32_t>(), pass.weights->pointer<float>(),
                               gradient.pointer<T>(), sums, classes_, smoothing_, pass.loss_scale, pass.more_scale,
                               rows_of_sample_, ignore_index_});
    const std::int64_t parts = loss_parts(rows_);
    if (parts == 1) return launch_teams(pass.stream, 1, SumLosses{sums, rows_, pass.control});
    double* const of_parts = sums + 3 * rows_;
    launch_teams(pass.stream, parts, SumLossesOfParts{sums, of_parts, rows_, parts});
    launch_teams(pass.stream, 1, SumLosses{of_parts, parts, pass.control});
  }

 private:
  std::int64_t classes_, rows_of_sample_, rows_;
  float smoothing_;
  std::int32_t ignore_index_;
};

}  // namespace

std::unique_ptr<Operation> make_pool(DType dtype, const TensorDesc& input, const PoolSpec& spec) {
  return with_number(dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Operation> {
    return std::make_unique<Pooling<T>>(input, spec);
  });
}

std::unique_ptr<Operation> make_elementwise(DType dtype, const TensorDesc& input, const ElementwiseSpec& spec) {
  return with_number(dtype, [&]<class T>(std::type_identity<T>) {
    return elementwise::with_row(spec.function, [&]<class Row>(std::type_identity<Row>) -> std::unique_ptr<Operation> {
      return std::make_unique<ElementwiseOperation<Row, T>>(input);
    });
  });
}

std::unique_ptr<Operation> make_add(DType dtype, std::span<const TensorDesc> inputs, const AddSpec& spec) {
  return with_number(dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Operation> {
    return std::make_unique<AddOperation<T>>(inputs, spec);
  });
}

std::unique_ptr<Operation> make_concat(DType dtype, std::span<const TensorDesc> inputs, const ConcatSpec& spec) {
  return with_number(dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Operation> {
    return std::make_unique<ConcatOperation<T>>(inputs, spec);
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

std::unique_ptr<LossOperation> make_softmax_cross_entropy(DType dtype, const TensorDesc& outputs,
                                                          const CrossEntropySpec& spec) {
  if (!spec.weights.empty()) return nullptr;
  return with_number(dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<LossOperation> {
    return std::make_unique<SoftmaxCrossEntropyOperation<T>>(outputs.shape, spec);
  });
}

}  // namespace ronda::cudnn
