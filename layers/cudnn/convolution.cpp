#include <ronda/layers/cudnn/choice.hpp>
#include <ronda/layers/cudnn/geometry.hpp>
#include <ronda/layers/cudnn/graph.hpp>
#include <ronda/layers/cudnn/kernels.hpp>
#include <ronda/layers/cudnn/library.hpp>
#include <ronda/layers/cudnn/patches.hpp>

#include <algorithm>
#include <array>
#include <type_traits>

namespace ronda::cudnn {
namespace {

/// Convolution and bias by one graph of cuDNN's, or the convolution by a graph or by patches and the bias by a kernel,
/// whichever is fastest; then pooling. A ReLU is the pooling kernel's, or the bias's where there is no pooling: cuDNN's
/// own makes 0 of NaN. What lies before the pooling is kept from forward to backward.
template <Number T>
class Convolution final : public Operation {
 public:
  Convolution(std::shared_ptr<Library> library, const ConvolutionProblem& spec, const OperationContext& context)
      : library_(std::move(library)), spec_(spec), inner_{convolution_output(spec), dtype_of<T>, {}} {
    require_plain(spec.input, dtype_of<T>, "a convolution");
    plan_.parameters = {{weight_shape(spec, spec.input.shape), dtype_of<T>, weight_layout()}};
    if (spec.bias) plan_.parameters.push_back({Shape{spec.outputs}, dtype_of<T>, {}});
    plan_.output = inner_;
    if (spec.pool) {
      plan_.output = {pool_output(inner_.shape, *spec.pool), dtype_of<T>, {}};
      plan_.pass_bytes = inner_.bytes();
    }
    plan_.backward_reads_output = spec.activation != Activation::none && !spec.pool;
    choose_all(context);
    plan_.scratch_bytes = workspace_alignment + workspace_bytes_ + aligned_bytes(inner_.bytes()) + sums_bytes();
  }

  void bind(const OperationMemory& memory) override {
    memory_ = memory;
    result_ = spec_.pool ? reinterpret_cast<T*>(memory.pass) : memory.output.pointer<T>();
    workspace_ = aligned_workspace(memory.scratch);
    inner_gradient_ = reinterpret_cast<T*>(workspace_ + workspace_bytes_);
    sums_ = reinterpret_cast<float*>(workspace_ + workspace_bytes_ + aligned_bytes(inner_.bytes()));
  }

  void forward(Inputs inputs, const Pass& pass) override {
    const Tensor& input = inputs.front();
    run_forward(forward_, pass.stream, input.pointer<T>(), memory_.parameters[0]->value.pointer<T>(),
                spec_.bias ? memory_.parameters[1]->value.pointer<T>() : nullptr, result_, workspace_);
    if (spec_.pool)
      pool(pass.stream, geometry(inner_.shape, *spec_.pool), inner_.shape[0], result_, memory_.output.pointer<T>(),
           relu());
  }

  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    const Tensor& input = inputs.front();
    const T* dz = before_activation(output_gradient.pointer<T>(), pass.stream);
    run(weights_, pass.stream, {dz, input.pointer<T>(), memory_.parameters[0]->gradient.pointer<T>()}, workspace_);
    if (spec_.bias)
      sum_columns(pass.stream, dz, rows(), spec_.outputs, sums_, memory_.parameters[1]->gradient.pointer<T>());
    for (Parameter* parameter : memory_.parameters)
      if (parameter != nullptr) pass.on_ready(parameter->id, pass.stream);
    if (!memory_.input_gradient().empty())
      run(data_, pass.stream, {dz, memory_.parameters[0]->value.pointer<T>(), memory_.input_gradient().pointer<T>()},
          workspace_);
  }

 private:
  /// A graph with the engine that was picked, and whether a kernel has to do bias and ReLU.
  struct Step {
    std::unique_ptr<Graph> graph;
    const char* name = "convolution";
    bool kernel = false, takes_bias = false;
    std::size_t engine = 0;
  };

  [[nodiscard]] bool relu() const { return spec_.activation == Activation::relu; }
  /// Whether the kernel that adds the bias has to do the ReLU too.
  [[nodiscard]] bool rectifies() const { return relu() && !spec_.pool; }
  [[nodiscard]] std::int64_t rows() const { return inner_.count() / spec_.outputs; }
  [[nodiscard]] std::size_t sums_bytes() const {
    return static_cast<std::size_t>(column_chunks(rows(), spec_.outputs) * spec_.outputs) * sizeof(float);
  }

  const T* before_activation(const T* dy, Stream& stream) const {
    if (spec_.pool)
      pool_gradient(stream, geometry(inner_.shape, *spec_.pool), inner_.shape[0], result_, dy, inner_gradient_, relu());
    else if (relu())
      launch(stream, inner_.count(), ReluGradient<T>{result_, dy, inner_gradient_});
    else
      return dy;
    return inner_gradient_;
  }

  void run(const Step& step, Stream& stream, const std::array<const T*, 3>& tensors, std::byte* workspace) const {
    std::array<void*, 3> pointers{};
    std::ranges::transform(tensors, pointers.begin(), [](const T* p) { return const_cast<T*>(p); });
    step.graph->run(*library_, stream, pointers, workspace, step.engine);
  }
  void run_forward(const Step& step, Stream& stream, const T* x, const T* w, const T* b, T* y,
                   std::byte* workspace) const {
    if (step.takes_bias) {
      std::array<void*, 4> pointers{const_cast<T*>(x), const_cast<T*>(w), const_cast<T*>(b), y};
      step.graph->run(*library_, stream, pointers, workspace, step.engine);
    } else {
      run(step, stream, {x, w, y}, workspace);
    }
    if (step.kernel) add_bias(stream, y, b, rows(), spec_.outputs, rectifies());
  }

  struct Rehearsal {
    Buffer x, w, y, b, workspace;
  };

  void choose_all(const OperationContext& context) {
    const Rehearsal memory{library_->rehearsal_memory(spec_.input.bytes()),
                           library_->rehearsal_memory(plan_.parameters[0].bytes()),
                           library_->rehearsal_memory(inner_.bytes()),
                           library_->rehearsal_memory(static_cast<std::size_t>(spec_.outputs) * sizeof(T)),
                           library_->rehearsal_memory(workspace_limit)};
    const auto at = [](const Buffer& buffer) { return reinterpret_cast<T*>(buffer.data()); };
    std::byte* const workspace = memory.workspace.data();
    Stream& stream = library_->stream();
    forward_ = choose(
        context.picker, "forward", [&] { return forward_ways(); },
        [&](const Step& step) {
          run_forward(step, stream, at(memory.x), at(memory.w), spec_.bias ? at(memory.b) : nullptr, at(memory.y),
                      workspace);
        });
    if (context.mode == Mode::evaluation) return;
    weights_ = choose(
        context.picker, "weight gradient", [&] { return ways_of(ConvolutionGraph::weight_gradient); },
        [&](const Step& step) {
          run(step, stream, {at(memory.y), at(memory.x), at(memory.w)}, workspace);
        });
    if (!context.input_gradient) return;
    data_ = choose(
        context.picker, "data gradient", [&] { return ways_of(ConvolutionGraph::data_gradient); },
        [&](const Step& step) {
          run(step, stream, {at(memory.y), at(memory.w), at(memory.x)}, workspace);
        });
  }

  /// By cuDNN, and for float32 and TF32 by patches: without tensor cores cuDNN's deterministic engines are slow.
  [[nodiscard]] std::vector<Step> ways_of(ConvolutionGraph kind, bool kernel = false) const {
    std::vector<Step> ways;
    ways.push_back({.graph = make_graph(spec_, kind, library_->rules()), .kernel = kernel});
    if (std::is_same_v<T, float> && spec_.groups == 1)
      ways.push_back({.graph = make_patch_graph(spec_, kind, library_->rules()), .name = "patches", .kernel = kernel});
    return ways;
  }
  [[nodiscard]] std::vector<Step> forward_ways() const {
    std::vector<Step> ways = ways_of(ConvolutionGraph::forward, spec_.bias || rectifies());
    if (spec_.bias && !rectifies())
      ways.push_back({.graph = make_graph(spec_, ConvolutionGraph::forward_bias, library_->rules()),
                      .name = "fused",
                      .takes_bias = true});
    return ways;
  }

  [[nodiscard]] std::string question(const char* direction) const {
    return std::string("convolution ") + direction + " " + spec_.input.shape.text() + " to " +
           std::to_string(spec_.outputs) + " " + text_of_windows(spec_) + (spec_.bias ? "" : " no bias") +
           (rectifies() ? " relu" : "");
  }

  /// The ways to compute one thing, with what can be picked. Where `known` names an engine nothing else is built.
  struct Offer {
    std::vector<Step> ways;
    Choice choice;
    std::string why_none = {};
  };
  template <class Run>
  Offer offer(std::vector<Step> ways, std::string_view known, const Run& run) {
    Offer offer{std::move(ways), Choice(library_->stream())};
    for (Step& way : offer.ways) {
      const std::string name = way.name;
      const std::string_view engine = Choice::engine_of(known, name);
      Graph& graph = *way.graph;
      if (known.empty() || !engine.empty()) {
        graph.find_engines(*library_, engine);
        offer.why_none += (offer.why_none.empty() ? "" : "; ") + graph.why_none();
      }
      offer.choice.add_way(
          name, graph.engines().size(), [&graph](std::size_t i) { return graph.engines()[i].name; },
          [&way, &run](std::size_t i) {
            way.engine = i;
            run(way);
          });
    }
    return offer;
  }

  template <class Ways, class Run>
  Step choose(Picker& picker, const char* direction, const Ways& ways, const Run& run) {
    const std::string known = picker.known(question(direction));
    Offer offered = offer(ways(), known, run);
    if (!known.empty() && !offered.choice.has(known)) offered = offer(ways(), {}, run);
    const auto picked = offered.choice.pick(picker, question(direction), offered.why_none, library_->rules());
    Step step = std::move(offered.ways[picked.way]);
    step.engine = picked.engine;
    workspace_bytes_ = aligned_bytes(std::max(workspace_bytes_, step.graph->engines()[picked.engine].workspace_bytes));
    plan_.picks += (plan_.picks.empty() ? "" : ", ") + picked.name;
    return step;
  }

  std::shared_ptr<Library> library_;
  ConvolutionProblem spec_;
  TensorDesc inner_;  ///< before pooling
  Step forward_, weights_, data_;
  std::size_t workspace_bytes_ = 0;
  OperationMemory memory_;
  std::byte* workspace_ = nullptr;
  T *result_ = nullptr, *inner_gradient_ = nullptr;
  float* sums_ = nullptr;
};

}  // namespace

std::unique_ptr<Operation> make_convolution(std::shared_ptr<Library> library, const ConvolutionProblem& spec,
                                            const OperationContext& context) {
  return with_number(library->dtype(), [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Operation> {
    return std::make_unique<Convolution<T>>(std::move(library), spec, context);
  });
}

}  // namespace ronda::cudnn
