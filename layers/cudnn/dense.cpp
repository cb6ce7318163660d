#include <ronda/core/cuda/stream.hpp>
#include <ronda/core/error.hpp>
#include <ronda/layers/cudnn/choice.hpp>
#include <ronda/layers/cudnn/kernels.hpp>
#include <ronda/layers/cudnn/library.hpp>
#include <ronda/layers/cudnn/matmul.hpp>

#include <algorithm>

namespace ronda::cudnn {
namespace {

/// x (N, inputs), W (outputs, inputs): y = x · Wᵀ, dW = dzᵀ · x, dx = dz · W. Bias and bias gradient are epilogues of
/// the products where cuBLASLt has them for the shape and they are faster, and kernels otherwise. A ReLU is the
/// kernel's, with the bias: cuBLASLt's makes 0 of NaN.
template <Number T>
class Dense final : public Operation {
 public:
  Dense(std::shared_ptr<Library> library, const DenseProblem& spec, const OperationContext& context)
      : library_(std::move(library)), spec_(spec) {
    const Shape& in = spec.input.shape;
    if (in.rank() < 2) throw InputError("a dense layer takes (N, features), not " + in.text());
    if (spec.outputs < 1) throw InputError("a dense layer has at least one output");
    if (spec.input.dtype != dtype_of<T> || spec.input.padded_count() != spec.input.count())
      throw LogicError("a dense layer on a GPU cannot read " + spec.input.text());
    batch_ = in[0];
    inputs_ = batch_ > 0 ? in.count() / batch_ : 0;
    plan_.output = {Shape{batch_, spec.outputs}, dtype_of<T>, {}};
    plan_.parameters = {{Shape{spec.outputs, inputs_}, dtype_of<T>, {}}};
    if (spec.bias) plan_.parameters.push_back({Shape{spec.outputs}, dtype_of<T>, {}});
    plan_.backward_reads_output = spec.activation != Activation::none;
    choose_all(context);
    plan_.scratch_bytes = workspace_alignment + workspace_bytes_ + masked_bytes() + sums_bytes();
  }

  void bind(const OperationMemory& memory) override {
    memory_ = memory;
    workspace_ = aligned_workspace(memory.scratch);
    masked_ = reinterpret_cast<T*>(workspace_ + workspace_bytes_);
    sums_ = reinterpret_cast<float*>(workspace_ + workspace_bytes_ + masked_bytes());
  }

  void forward(Inputs inputs, const Pass& pass) override {
    const Tensor& input = inputs.front();
    run_forward(forward_, pass.stream, input.pointer<T>(), value(0), bias_value(), memory_.output.pointer<T>(),
                workspace_);
  }

  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    const Tensor& input = inputs.front();
    const T* dz = output_gradient.pointer<T>();
    if (spec_.activation == Activation::relu) {
      launch(pass.stream, batch_ * spec_.outputs, ReluGradient<T>{memory_.output.pointer<T>(), dz, masked_});
      dz = masked_;
    }
    run_weights(weights_, pass.stream, input.pointer<T>(), dz, gradient(0), spec_.bias ? gradient(1) : nullptr,
                workspace_, sums_);
    for (Parameter* parameter : memory_.parameters)
      if (parameter != nullptr) pass.on_ready(parameter->id, pass.stream);
    if (!memory_.input_gradient().empty())
      product(data_, pass.stream, {dz, value(0), memory_.input_gradient().pointer<T>(), nullptr}, workspace_);
  }

 private:
  /// A product with what is done around it.
  struct Step {
    std::unique_ptr<Matmul> matmul;
    std::size_t algorithm = 0;
    bool fused = false;  ///< the epilogue does what a kernel would otherwise
  };

  [[nodiscard]] std::size_t masked_bytes() const {
    return spec_.activation == Activation::relu ? aligned_bytes(plan_.output.bytes()) : 0;
  }
  [[nodiscard]] std::size_t sums_bytes() const {
    return static_cast<std::size_t>(column_chunks(batch_, spec_.outputs) * spec_.outputs) * sizeof(float);
  }
  [[nodiscard]] const T* value(std::size_t i) const { return memory_.parameters[i]->value.pointer<T>(); }
  [[nodiscard]] T* gradient(std::size_t i) const { return memory_.parameters[i]->gradient.pointer<T>(); }
  [[nodiscard]] T* bias_value() const { return spec_.bias ? memory_.parameters[1]->value.pointer<T>() : nullptr; }

  void product(const Step& step, Stream& stream, const Matmul::Operands& operands, std::byte* workspace) const {
    step.matmul->run(library_->cublas(), cuda::handle_of(stream), operands, workspace, step.algorithm);
  }
  void run_forward(const Step& step, Stream& stream, const T* x, const T* w, T* b, T* y, std::byte* workspace) const {
    product(step, stream, {x, w, y, step.fused ? b : nullptr}, workspace);
    const bool relu = spec_.activation == Activation::relu;
    if (!step.fused && (b != nullptr || relu))
      add_bias(stream, y, static_cast<const T*>(b), batch_, spec_.outputs, relu);
  }
  void run_weights(const Step& step, Stream& stream, const T* x, const T* dz, T* dw, T* db, std::byte* workspace,
                   float* sums) const {
    product(step, stream, {dz, x, dw, step.fused ? db : nullptr}, workspace);
    if (!step.fused && db != nullptr) sum_columns(stream, dz, batch_, spec_.outputs, sums, db);
  }

  /// Memory for timing: the larger of the matrices three times, and what the steps need besides.
  struct Rehearsal {
    Buffer x, w, y, b, sums, workspace;
  };

  void choose_all(const OperationContext& context) {
    const Matrix x{batch_, inputs_}, w{spec_.outputs, inputs_}, y{batch_, spec_.outputs};
    const auto bytes = [](const Matrix& m) { return static_cast<std::size_t>(m.rows * m.columns) * sizeof(T); };
    const Rehearsal memory{library_->rehearsal_memory(bytes(x)),
                           library_->rehearsal_memory(bytes(w)),
                           library_->rehearsal_memory(bytes(y)),
                           library_->rehearsal_memory(static_cast<std::size_t>(spec_.outputs) * sizeof(T)),
                           library_->rehearsal_memory(sums_bytes()),
                           library_->rehearsal_memory(workspace_limit)};
    const auto at = [](const Buffer& buffer) { return reinterpret_cast<T*>(buffer.data()); };
    T* const b = spec_.bias ? at(memory.b) : nullptr;
    const bool relu = spec_.activation == Activation::relu;
    const std::string shape = std::to_string(batch_) + "x" + std::to_string(inputs_) + "x" +
                              std::to_string(spec_.outputs) + (relu ? " relu" : "") + (spec_.bias ? "" : " no bias");
    const bool fusable = spec_.bias && !relu;  // a ReLU in the epilogue would make 0 of NaN
    forward_ = choose(context.picker, "dense forward " + shape, {x, false}, {w, true},
                      fusable ? Epilogue::bias : Epilogue::none, [&](const Step& step) {
                        run_forward(step, library_->stream(), at(memory.x), at(memory.w), b, at(memory.y),
                                    memory.workspace.data());
                      });
    if (context.mode == Mode::evaluation) return;
    weights_ = choose(context.picker, "dense weight gradient " + shape, {y, true}, {x, false},
                      spec_.bias ? Epilogue::bias_gradient : Epilogue::none, [&](const Step& step) {
                        run_weights(step, library_->stream(), at(memory.x), at(memory.y), at(memory.w), b,
                                    memory.workspace.data(), reinterpret_cast<float*>(memory.sums.data()));
                      });
    if (!context.input_gradient) return;
    data_ = choose(context.picker, "dense data gradient " + shape, {y, false}, {w, false}, Epilogue::none,
                   [&](const Step& step) {
                     product(step, library_->stream(), {at(memory.y), at(memory.w), at(memory.x), nullptr},
                             memory.workspace.data());
                   });
  }

  template <class Run>
  Step choose(Picker& picker, const std::string& question, const Matmul::Factor& left, const Matmul::Factor& right,
              Epilogue epilogue, Run run) {
    std::vector<Step> ways;
    if (epilogue != Epilogue::none)
      ways.push_back({std::make_unique<Matmul>(left, right, epilogue, library_->rules()), 0, true});
    ways.push_back({std::make_unique<Matmul>(left, right, Epilogue::none, library_->rules()), 0, false});
    Choice choice(library_->stream());
    for (Step& way : ways) {
      way.matmul->find_algorithms(library_->cublas());
      choice.add_way(
          way.fused ? "epilogue" : "product", way.matmul->algorithms(), [](std::size_t i) { return std::to_string(i); },
          [&way, &run](std::size_t i) {
            way.algorithm = i;
            run(way);
          });
    }
    const auto picked = choice.pick(picker, question, "cuBLASLt suggests none that runs", library_->rules());
    Step step = std::move(ways[picked.way]);
    step.algorithm = picked.engine;
    workspace_bytes_ = aligned_bytes(std::max(workspace_bytes_, step.matmul->workspace_bytes(picked.engine)));
    plan_.picks += (plan_.picks.empty() ? "" : ", ") + picked.name;
    return step;
  }

  std::shared_ptr<Library> library_;
  DenseProblem spec_;
  std::int64_t batch_ = 0, inputs_ = 0;
  Step forward_, weights_, data_;
  std::size_t workspace_bytes_ = 0;
  OperationMemory memory_;
  std::byte* workspace_ = nullptr;
  T* masked_ = nullptr;
  float* sums_ = nullptr;
};

}  // namespace

std::unique_ptr<Operation> make_dense(std::shared_ptr<Library> library, const DenseProblem& spec,
                                      const OperationContext& context) {
  return with_number(library->dtype(), [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Operation> {
    return std::make_unique<Dense<T>>(std::move(library), spec, context);
  });
}

}  // namespace ronda::cudnn
