// The one file that sees cudnn-frontend: it takes half a minute to compile.
#include <cudnn_frontend.h>

#include <algorithm>
#include <array>

#include <ronda/core/error.hpp>
#include <ronda/layers/cudnn/graph.hpp>
#include <ronda/layers/cudnn/library.hpp>

namespace ronda::cudnn {
namespace {

namespace fe = cudnn_frontend;
using Attributes = fe::graph::Tensor_attributes;
using TensorPointer = std::shared_ptr<Attributes>;
using Numbers = std::vector<std::int64_t>;

/// cuDNN says (N, C, H, W) whatever the order in memory, which strides say.
struct Dims {
  Numbers extents, strides;
};
Dims channels_last(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  return {{n, c, h, w}, {h * w * c, 1, w * c, c}};
}
Dims image(const Shape& s) { return channels_last(s[0], s[3], s[1], s[2]); }

fe::DataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float16: return fe::DataType_t::HALF;
    case DType::bfloat16: return fe::DataType_t::BFLOAT16;
    default: return fe::DataType_t::FLOAT;
  }
}

void check(fe::error_t status, const char* call) {
  if (status.is_bad()) throw DeviceError(std::string("cuDNN: ") + call + " failed: " + status.get_message());
}

class FrontendGraph final : public Graph {
 public:
  FrontendGraph(const ConvolutionProblem& spec, ConvolutionGraph kind, const EngineRules& rules)
      : rules_(rules), window_(spec) {
    graph_.set_io_data_type(type_of(dtype_of_layers(rules.precision)))
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    const Dims x = image(spec.input.shape), y = image(convolution_output(spec));
    const Shape weight = weight_shape(spec, spec.input.shape);
    const Dims w = channels_last(weight[0], weight[1], weight[2], weight[3]);
    switch (kind) {
      case ConvolutionGraph::data_gradient: describe_data_gradient(y, w, x); break;
      case ConvolutionGraph::weight_gradient: describe_weight_gradient(y, x, w); break;
      default: describe_forward(x, w, y, kind);
    }
    check(graph_.validate(), "the check of a graph");
  }

  void find_engines(const Library& library, std::string_view known) override {
    const cudnnHandle_t handle = library.cudnn(library.stream());
    engines_.clear();
    indices_.clear();
    fe::error_t status = graph_.build_operation_graph(handle);
    if (status.is_good()) status = graph_.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
    if (status.is_good()) {
      graph_.deselect_numeric_notes(unwanted());
      graph_.deselect_workspace_greater_than(static_cast<std::int64_t>(workspace_limit));
      status = graph_.check_support();
    }
    if (status.is_good()) build_engines(known);
    if (engines_.empty() && status.is_bad()) why_none_ = status.get_message();
  }

  [[nodiscard]] std::span<const Engine> engines() const noexcept override { return engines_; }
  [[nodiscard]] const std::string& why_none() const noexcept override { return why_none_; }

  void run(const Library& library, Stream& stream, std::span<void*> pointers, std::byte* workspace,
           std::size_t engine) override {
    check(graph_.execute_plan_at_index(library.cudnn(stream), pointers.data(), static_cast<int>(pointers.size()),
                                       workspace, indices_[engine]),
          "a convolution");
  }

 private:
  /// Tensors are numbered in the order in which `run` is given their pointers.
  TensorPointer tensor(const char* name, const Dims& dims) {
    return graph_.tensor(
        Attributes().set_name(name).set_uid(++last_uid_).set_dim(dims.extents).set_stride(dims.strides));
  }
  void set_output(const TensorPointer& tensor, const Dims& dims) {
    tensor->set_output(true).set_uid(++last_uid_).set_dim(dims.extents).set_stride(dims.strides);
  }

  template <class Operation>
  [[nodiscard]] Operation windowed() const {
    Operation operation;
    operation.set_pre_padding(window_.before)
        .set_post_padding(window_.after)
        .set_stride(window_.stride)
        .set_dilation(window_.dilation);
    return operation;
  }

  void describe_forward(const Dims& x, const Dims& w, const Dims& y, ConvolutionGraph kind) {
    const auto input = tensor("x", x), weight = tensor("w", w);
    auto result = graph_.conv_fprop(input, weight, windowed<fe::graph::Conv_fprop_attributes>());
    if (kind != ConvolutionGraph::forward) {
      const auto bias = tensor("b", channels_last(1, w.extents[0], 1, 1));
      result = graph_.pointwise(result, bias, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
    }
    set_output(result, y);
  }
  void describe_data_gradient(const Dims& dy, const Dims& w, const Dims& dx) {
    const auto gradient = tensor("dy", dy), weight = tensor("w", w);
    set_output(graph_.conv_dgrad(gradient, weight, windowed<fe::graph::Conv_dgrad_attributes>()), dx);
  }
  void describe_weight_gradient(const Dims& dy, const Dims& x, const Dims& dw) {
    const auto gradient = tensor("dy", dy), input = tensor("x", x);
    set_output(graph_.conv_wgrad(gradient, input, windowed<fe::graph::Conv_wgrad_attributes>()), dw);
  }

  [[nodiscard]] std::vector<fe::NumericalNote_t> unwanted() const {
    std::vector<fe::NumericalNote_t> notes{fe::NumericalNote_t::DOWN_CONVERT_INPUTS,
                                           fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION};
    if (rules_.deterministic) notes.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
    if (rules_.precision == Precision::float32) notes.push_back(fe::NumericalNote_t::TENSOR_CORE);
    if (rules_.precision != Precision::tf32)
      for (const auto note :
           {fe::NumericalNote_t::FFT, fe::NumericalNote_t::WINOGRAD, fe::NumericalNote_t::WINOGRAD_TILE_4x4,
            fe::NumericalNote_t::WINOGRAD_TILE_6x6, fe::NumericalNote_t::WINOGRAD_TILE_13x13})
        notes.push_back(note);
    return notes;
  }

  void build_engines(std::string_view known) {
    const std::int64_t count = graph_.get_execution_plan_count();
    std::string name, last;
    for (std::int64_t i = 0; i < count && !known.empty(); ++i)
      if (graph_.get_plan_name_at_index(i, name).is_good() && name == known && build_engine(i).is_good()) return;
    for (std::int64_t i = 0; i < count && engines_.size() < engines_tried; ++i)
      if (fe::error_t status = build_engine(i); status.is_bad()) last = status.get_message();
    if (!engines_.empty()) return;
    std::string without = rules_.deterministic ? "not deterministic" : "";
    if (rules_.precision == Precision::float32)
      without += std::string(without.empty() ? "" : " or ") + "less exact than float32";
    why_none_ = "of the " + std::to_string(count) + " engines that cuDNN suggests" +
                (without.empty() ? "" : ", without those that are " + without + ",") +
                " none runs here (the last: " + last + ")";
  }
  /// Fails for one that was ruled out, or is not for this device.
  fe::error_t build_engine(std::int64_t index) {
    Engine engine;
    std::int64_t workspace = 0;
    fe::error_t status = graph_.build_plan_at_index(index);
    if (status.is_good()) status = graph_.get_plan_name_at_index(index, engine.name);
    if (status.is_good()) status = graph_.get_workspace_size_plan_at_index(index, workspace);
    if (status.is_bad()) return status;
    engine.workspace_bytes = static_cast<std::size_t>(workspace);
    engines_.push_back(std::move(engine));
    indices_.push_back(index);
    return status;
  }

  struct Window {
    Numbers before, after, stride, dilation;
    explicit Window(const ConvolutionSpec& spec)
        : before{spec.padding.height, spec.padding.width},
          after{spec.padding.height + spec.trailing.height, spec.padding.width + spec.trailing.width},
          stride{spec.stride.height, spec.stride.width},
          dilation{spec.dilation.height, spec.dilation.width} {}
  };

  EngineRules rules_;
  Window window_;
  fe::graph::Graph graph_;
  std::int64_t last_uid_ = 0;
  std::vector<Engine> engines_;
  std::vector<std::int64_t> indices_;
  std::string why_none_;
};

}  // namespace

Layout weight_layout() { return Layout(std::array{0, 2, 3, 1}, {}); }

std::unique_ptr<Graph> make_graph(const ConvolutionProblem& spec, ConvolutionGraph kind, const EngineRules& rules) {
  return std::make_unique<FrontendGraph>(spec, kind, rules);
}

}  // namespace ronda::cudnn
