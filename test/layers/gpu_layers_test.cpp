// Every operation of the GPU against the plain loops: every candidate in turn, memory full of garbage. Needs a GPU.
#include "layers/comparison.hpp"
#include "support/catch.hpp"
#include "support/operations.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/device_context.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/number.hpp>
#include <ronda/core/random.hpp>
#include <ronda/layers/cudnn/library.hpp>
#include <ronda/layers/cudnn/patches.hpp>
#include <ronda/layers/primitives.hpp>

using namespace ronda;
using namespace ronda::test;

namespace {

struct Bed {
  std::unique_ptr<DeviceContext> context = make_cuda_context(0);
  std::unique_ptr<Stream> stream = context->make_stream(StreamPriority::usual);
};

/// One tensor with memory of its own, on the host or on the GPU.
class Owned {
 public:
  Owned(Bed* gpu, const TensorDesc& desc)
      : gpu_(gpu), memory_(gpu != nullptr ? gpu->context->allocate(desc.bytes()) : Buffer::host(desc.bytes())) {
    tensor = Tensor(desc, memory_.data(), memory_.device());
    write(std::vector<float>(static_cast<std::size_t>(desc.padded_count()), std::numeric_limits<float>::quiet_NaN()));
  }
  /// Numbers by logical index: the same in every layout.
  void fill(std::vector<float> plain) {
    std::vector<float> stored(plain.size());
    reorder(Tensor({tensor.shape(), DType::float32, {}}, plain.data()), Tensor(wide(), stored.data()));
    write(stored);
  }
  [[nodiscard]] std::vector<float> plain() const {
    const Buffer here = Buffer::host(tensor.desc().bytes());
    move(memory_.data(), here.data());
    std::vector<float> stored = floats_of(Tensor(tensor.desc(), here.data())), values(stored.size());
    reorder(Tensor(wide(), stored.data()), Tensor({tensor.shape(), DType::float32, {}}, values.data()));
    return values;
  }
  Tensor tensor;

 private:
  [[nodiscard]] TensorDesc wide() const { return {tensor.shape(), DType::float32, tensor.desc().layout}; }
  void write(std::vector<float> stored) const {
    const Buffer here = Buffer::host(tensor.desc().bytes());
    convert(Tensor(wide(), stored.data()), Tensor(tensor.desc(), here.data()));
    move(here.data(), memory_.data());
  }
  void move(const void* from, void* to) const {
    if (gpu_ == nullptr) {
      std::memcpy(to, from, tensor.desc().bytes());
    } else {
      gpu_->context->copy(from, to, tensor.desc().bytes(), *gpu_->stream);
      gpu_->stream->synchronize();
    }
  }
  Bed* gpu_;
  Buffer memory_;
};

/// Operands. For half types small whole numbers, and halves between them for biases: sums of these are exact in any
/// order, so that a ReLU and the largest of a window fall the same way everywhere.
std::vector<float> operands(const TensorDesc& desc, std::uint64_t stream, float scale, bool exact) {
  std::vector<float> numbers = random_numbers(desc.count(), stream, scale);
  if (!exact) return numbers;
  const float shift = desc.shape.rank() == 1 ? 0.5F : 0.0F;
  for (float& number : numbers) number = std::nearbyint(1.4F * number / scale) + shift;
  return numbers;
}

struct Results {
  std::vector<float> output, input_gradient;
  std::vector<std::vector<float>> parameter_gradients;
  bool operator==(const Results&) const = default;
};

/// Runs an operation forward and backward twice, the second time on what the first left behind.
/// @param exact  operands are of the kind that half types hold
Results results_of(Operation& operation, const TensorDesc& input_desc, Bed* gpu, bool exact) {
  const OperationPlan& plan = operation.plan();
  const auto bytes = [&](std::size_t count) {
    return Owned(gpu, {Shape{static_cast<std::int64_t>(count / sizeof(float)) + 1}, DType::float32, {}});
  };
  Owned input(gpu, input_desc), output(gpu, plan.output), output_gradient(gpu, plan.output),
      input_gradient(gpu, input_desc), pass_memory = bytes(plan.pass_bytes), scratch = bytes(plan.scratch_bytes);
  input.fill(operands(input_desc, 1, 1, exact));
  output_gradient.fill(operands(plan.output, 2, 1, exact));
  std::vector<Owned> values, gradients;
  std::vector<Parameter> parameters;
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    values.emplace_back(gpu, plan.parameters[i]).fill(operands(plan.parameters[i], 3 + i, 0.5F, exact));
    gradients.emplace_back(gpu, plan.parameters[i]);
    parameters.push_back(
        {ParameterId{static_cast<std::uint32_t>(i)}, "p", values.back().tensor, gradients.back().tensor, {}, {}});
  }
  OperationMemory memory{.output = output.tensor,
                         .input_gradients = {input_gradient.tensor},
                         .pass = pass_memory.tensor.data(),
                         .scratch = scratch.tensor.data()};
  for (Parameter& parameter : parameters) memory.parameters.push_back(&parameter);
  operation.bind(memory);
  CpuStream cpu;
  const Pass pass{.stream = gpu != nullptr ? *gpu->stream : cpu, .on_ready = {}};
  std::optional<Results> first;
  for (int round = 0; round < 2; ++round) {
    operation.forward({&input.tensor, 1}, pass);
    operation.backward({&input.tensor, 1}, output_gradient.tensor, pass);
    pass.stream.synchronize();
    Results found{output.plain(), input_gradient.plain(), {}};
    for (const Owned& gradient : gradients) found.parameter_gradients.push_back(gradient.plain());
    if (first) CHECK(found == *first);  // deterministic, to the bit
    first = found;
  }
  return *first;
}

/// Takes the candidates in turn, one further whenever it is told. What ran the first time it knows by name, so that the
/// library need not build all of them again for each.
class TurningPicker final : public Picker {
 public:
  std::size_t pick(std::string_view question, std::span<const Candidate> candidates) override {
    std::vector<std::string>& names = names_[std::string(question)];
    if (names.empty())
      for (const Candidate& candidate : candidates)
        if (candidate.run) names.push_back(candidate.name);
    rounds_ = std::max(rounds_, names.size());
    const std::string wanted = known(question);
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i].name == wanted && candidates[i].run) return i;
    FAIL("what ran before does not run: " << question << ", " << wanted);
    return 0;
  }
  [[nodiscard]] std::string known(std::string_view question) const override {
    const auto found = names_.find(question);
    if (found == names_.end() || found->second.empty()) return {};
    return found->second[turn_ < found->second.size() ? turn_ : 0];
  }
  void turn_to(std::size_t turn) noexcept { turn_ = turn; }
  /// After which every candidate has been taken.
  [[nodiscard]] std::size_t rounds() const noexcept { return rounds_; }

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> names_;
  std::size_t turn_ = 0, rounds_ = 1;
};

enum class Try : std::uint8_t { every_candidate, first_and_last };

constexpr Precision precisions[] = {Precision::float32, Precision::tf32, Precision::mixed_bfloat16,
                                    Precision::mixed_float16};

/// float32: what the order of a sum costs. tf32: factors of 11 bits. Half types: results of 8 and 11 bits, a result
/// between two operations rounded once more.
float tolerance_of(Precision precision) {
  switch (precision) {
    case Precision::float32: return 1e-5F;
    case Precision::tf32: return 5e-3F;
    case Precision::mixed_bfloat16: return 0x1p-7F;
    case Precision::mixed_float16: return 0x1p-10F;
  }
  return 0;
}

/// As check_close, but for TF32: where a ReLU's sign or the largest of a window falls the other way by a rounding of
/// its factors, one gradient is another. A few among thousands are at most 5 % of the root of their squares' sum.
void check_gradient(const std::string& what, const std::vector<float>& found, const std::vector<float>& expected,
                    Precision precision) {
  if (precision != Precision::tf32) return check_close(what, found, expected, tolerance_of(precision));
  REQUIRE(found.size() == expected.size());
  double difference = 0, whole = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    difference += std::pow(found[i] - expected[i], 2);
    whole += std::pow(expected[i], 2);
  }
  INFO(what << ": " << std::sqrt(difference) << " of " << std::sqrt(whole));
  CHECK(std::sqrt(difference) <= 0.05 * std::sqrt(whole));
}

/// @param make  an operation of these primitives on this input
template <class Make>
void compare(const std::string& what, const TensorDesc& input, Make make, Try tried = Try::every_candidate) {
  FirstPicker first;
  const auto plain = make_reference_primitives();
  const auto reference = make(*plain, input, OperationContext{first});
  Bed gpu;
  for (const Precision precision : precisions) {
    const TensorDesc ours{input.shape, dtype_of_layers(precision), input.layout};
    const bool exact = ours.dtype != DType::float32;
    const Results expected = results_of(*reference, input, nullptr, exact);
    const auto library = make_cudnn_primitives(*gpu.context, *gpu.stream, {precision});
    TurningPicker picker;
    for (std::size_t turn = 0; turn < picker.rounds(); ++turn) {
      if (tried == Try::first_and_last && turn == 1) turn = picker.rounds() - 1;
      picker.turn_to(turn);
      const auto operation = make(*library, ours, OperationContext{picker});
      const std::string name = what + " in " + std::string(name_of(precision)) + " [" + operation->plan().picks + "]";
      CHECK(operation->plan().output.dtype == ours.dtype);
      const Results found = results_of(*operation, ours, &gpu, exact);
      check_close(name + " output", found.output, expected.output, tolerance_of(precision));
      check_gradient(name + " input gradient", found.input_gradient, expected.input_gradient, precision);
      for (std::size_t i = 0; i < expected.parameter_gradients.size(); ++i)
        check_gradient(name + " parameter gradient", found.parameter_gradients[i], expected.parameter_gradients[i],
                       precision);
    }
  }
}

/// The same numbers, rounded to a type that layers store.
std::vector<float> in_type(DType dtype, std::vector<float> numbers) {
  with_number(dtype, [&]<class T>(std::type_identity<T>) {
    for (float& number : numbers) number = as_float(as_number<T>(number));
  });
  return numbers;
}

TensorDesc image(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c) {
  return {Shape{n, h, w, c}, DType::float32, {}};
}

}  // namespace

TEST_CASE("dense on a GPU equals the plain loops") {
  for (const Shape& shape : {Shape{1, 1}, Shape{5, 17}, Shape{64, 784}, Shape{3, 130}})
    for (const std::int64_t outputs : {1, 10, 128})
      for (const bool bias : {true, false})
        for (const Activation activation : {Activation::none, Activation::relu}) {
          const TensorDesc input{shape, DType::float32, {}};
          compare("dense " + shape.text() + " to " + std::to_string(outputs), input,
                  [&](Primitives& primitives, const TensorDesc& given, const OperationContext& context) {
                    return make_dense(primitives, given, {outputs, bias, activation}, context);
                  });
        }
}

TEST_CASE("convolution on a GPU equals the plain loops, with and without pooling") {
  struct Case {
    TensorDesc input;
    std::int64_t outputs, kernel, stride, padding;
    std::optional<PoolSpec> pool;
    Try tried = Try::first_and_last;  // an engine may be compiled when it is asked for, and takes seconds then
  };
  const PoolSpec halves{PoolKind::maximum, 2, 2, 0}, overlapping{PoolKind::average, 3, 2, 1};
  for (const Case& c : {Case{image(8, 28, 28, 1), 32, 3, 1, 0, halves, Try::every_candidate},
                        Case{image(4, 13, 13, 32), 64, 3, 1, 0, halves, Try::every_candidate},
                        Case{image(4, 5, 5, 64), 64, 3, 1, 0, {}}, Case{image(2, 9, 8, 4), 16, 3, 2, 1, {}},
                        Case{image(2, 9, 9, 4), 32, 5, 2, 2, overlapping}, Case{image(2, 5, 5, 32), 64, 1, 1, 0, {}},
                        Case{image(2, 7, 6, 3), 5, 3, 1, 1, {}}})
    for (const bool bias : {true, false})
      for (const Activation activation : {Activation::none, Activation::relu}) {
        if (c.tried == Try::first_and_last && bias != (activation == Activation::relu)) continue;
        compare(
            "convolution " + c.input.text() + " to " + std::to_string(c.outputs), c.input,
            [&](Primitives& primitives, const TensorDesc& given, const OperationContext& context) {
              return make_convolution(
                  primitives, {{c.outputs, c.kernel, c.stride, c.padding, bias, activation, c.pool}, given}, context);
            },
            c.tried);
      }
}

TEST_CASE("a convolution by patches gives the same for some images at a time, the last fewer") {
  Bed gpu;
  const Precision precision = Precision::float32;
  const cudnn::Library library(*gpu.context, *gpu.stream, {precision});
  for (const std::int64_t channels : {3, 8}) {
    const ConvolutionProblem spec{{.outputs = 5, .padding = 1}, image(35, 6, 7, channels)};
    const TensorDesc output{convolution_output(spec), DType::float32, {}},
        weight{{5, 9 * channels}, DType::float32, {}};
    for (const auto kind : {cudnn::ConvolutionGraph::forward, cudnn::ConvolutionGraph::data_gradient,
                            cudnn::ConvolutionGraph::weight_gradient}) {
      std::optional<std::vector<float>> whole;
      for (const std::size_t images : {35, 16}) {
        const auto graph = cudnn::make_patch_graph(
            spec, kind, library.rules(), images * 42 * 9 * static_cast<std::size_t>(channels) * sizeof(float));
        graph->find_engines(library, {});
        REQUIRE_FALSE(graph->engines().empty());
        Owned x(&gpu, spec.input), w(&gpu, weight), y(&gpu, output);
        x.fill(random_numbers(spec.input.count(), 1, 1));
        w.fill(random_numbers(weight.count(), 2, 1));
        y.fill(random_numbers(output.count(), 3, 1));
        const Buffer workspace = gpu.context->allocate(cudnn::workspace_limit);
        void *const at_x = x.tensor.data(), *const at_w = w.tensor.data(), *const at_y = y.tensor.data();
        const bool forward = kind == cudnn::ConvolutionGraph::forward,
                   of_data = kind == cudnn::ConvolutionGraph::data_gradient;
        std::array<void*, 3> pointers{forward ? at_x : at_y, forward || of_data ? at_w : at_x,
                                      forward   ? at_y
                                      : of_data ? at_x
                                                : at_w};
        graph->run(library, *gpu.stream, pointers, workspace.data(), 0);
        gpu.stream->synchronize();
        const auto found = (forward ? y : of_data ? x : w).plain();
        if (whole) check_close("in parts", found, *whole, 1e-5F);
        whole = found;
      }
    }
  }
}

TEST_CASE("unusual convolutions on a GPU equal the plain loops, or there is one error where cuDNN has none") {
  for (const ConvolutionSpec& spec :
       {ConvolutionSpec{.outputs = 16, .kernel = {1, 7}, .stride = {2, 1}, .padding = {0, 3}},
        ConvolutionSpec{.outputs = 16, .padding = {2, 1}, .dilation = {2, 3}},
        ConvolutionSpec{.outputs = 16, .kernel = {2, 4}, .padding = {0, 1}, .trailing = 1},
        ConvolutionSpec{.outputs = 16, .groups = 2}, ConvolutionSpec{.outputs = 8, .padding = 1, .groups = 8}}) {
    try {
      compare(
          "convolution " + text_of_windows(spec), image(4, 9, 12, 8),
          [&](Primitives& primitives, const TensorDesc& given, const OperationContext& context) {
            return make_convolution(primitives, {spec, given}, context);
          },
          Try::first_and_last);
    } catch (const DeviceError& error) {
      CHECK_THAT(error.what(), Contains("NVIDIA's libraries have nothing for convolution"));
      WARN(error.what());
    }
  }
}

TEST_CASE("pooling and ReLU on a GPU equal the plain loops") {
  for (const PoolKind kind : {PoolKind::maximum, PoolKind::average})
    for (const PoolSpec& spec :
         {PoolSpec{kind, 2, 2, 0}, PoolSpec{kind, 3, 2, 1}, PoolSpec{kind, 2, 3, 0}, PoolSpec{kind, {7, 6}, 1, 0}})
      for (const std::int64_t channels : {17, 16})
        compare("pooling", image(2, 7, 6, channels),
                [&](Primitives& primitives, const TensorDesc& given, const OperationContext& context) {
                  return make_pool(primitives, given, spec, context);
                });
  for (const ElementwiseFunction function : every_function)
    compare(kind_of(ElementwiseSpec{function}).c_str(), image(3, 4, 5, 17),
            [&](Primitives& primitives, const TensorDesc& given, const OperationContext& context) {
              return make_elementwise(primitives, function, given, context);
            });
}

TEST_CASE("softmax cross entropy on a GPU equals the CPU's, for few classes and for many") {
  Bed gpu;
  for (const Precision precision : precisions)
    for (const auto& [rows, classes] :
         {std::pair<std::int64_t, std::int64_t>{37, 2}, {37, 10}, {37, 1000}, {1000, 10}}) {
      const DType dtype = dtype_of_layers(precision);
      const TensorDesc shape{{rows, classes}, DType::float32, {}};
      const TensorDesc row_desc{{rows}, DType::float32, {}};
      std::vector<std::int32_t> labels(static_cast<std::size_t>(rows));
      for (std::size_t n = 0; n < labels.size(); ++n)
        labels[n] = static_cast<std::int32_t>(n * 7 % static_cast<std::size_t>(classes));
      const std::vector<float> numbers = in_type(dtype, random_numbers(rows * classes, 1, 10));
      const auto run = [&](Primitives& primitives, Bed* device) {
        const TensorDesc desc{shape.shape, primitives.dtype(), {}};
        const auto loss = primitives.softmax_cross_entropy(desc, {.smoothing = 0.1F});
        Owned outputs(device, desc), gradient(device, desc), weights(device, row_desc),
            scale(device, {{1}, DType::float32, {}});
        outputs.fill(numbers);
        weights.fill(random_numbers(rows, 2, 1));
        scale.fill({8});
        const std::size_t label_bytes = labels.size() * sizeof(std::int32_t);
        CpuStream cpu;
        Stream& stream = device != nullptr ? *device->stream : cpu;
        const auto context = make_cpu_context(1);
        DeviceContext& memory = device != nullptr ? *device->context : *context;
        const Buffer targets = memory.allocate(label_bytes), control = memory.allocate(sizeof(StepControl)),
                     scratch = memory.allocate(loss->scratch_bytes());
        memory.copy(labels.data(), targets.data(), label_bytes, stream);
        loss->run(outputs.tensor, Tensor({{rows}, DType::int32, {}}, targets.data()), gradient.tensor, scratch.data(),
                  {.stream = stream,
                   .weights = &weights.tensor,
                   .loss_scale = device != nullptr ? 0.5F : 4.0F,
                   .more_scale = device != nullptr ? scale.tensor.pointer<float>() : nullptr,
                   .control = reinterpret_cast<StepControl*>(control.data()),
                   .on_ready = {}});
        StepControl sums;
        memory.copy(control.data(), &sums, sizeof sums, stream);
        stream.synchronize();
        return std::pair{sums, gradient.plain()};
      };
      const auto [expected, expected_gradient] = run(*make_reference_primitives(), nullptr);
      const auto [found, gradient] = run(*make_cudnn_primitives(*gpu.context, *gpu.stream, {precision}), &gpu);
      CHECK(found.weight == Approx(expected.weight).epsilon(1e-12));
      CHECK(found.metric == Approx(expected.metric).epsilon(1e-12));
      CHECK(found.loss == Approx(expected.loss).epsilon(1e-5));
      check_close("gradient", gradient, expected_gradient, dtype == DType::float32 ? 1e-5F : tolerance_of(precision));
    }
}
