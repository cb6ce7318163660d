#include <ronda/core/error.hpp>
#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/onednn/memory_desc.hpp>
#include <ronda/layers/onednn/operations.hpp>
#include <ronda/layers/onednn/processor.hpp>
#include <ronda/layers/widened.hpp>

namespace ronda::onednn {
namespace {

std::string version() {
  const dnnl_version_t* v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

/// Whether the library multiplies numbers of bfloat16 on this processor, however it does so.
bool has_bfloat16(const Runtime& runtime) {
  const dnnl::memory::desc matrix = plain_layout({16, 16}, Axes::weight, DType::bfloat16);
  try {
    static_cast<void>(
        adapter::matmul(runtime.engine, matrix, matrix, dnnl::memory::desc(), matrix, Computation::attributes()));
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}

TensorDesc in(DType dtype, const TensorDesc& desc) { return {desc.shape, dtype, desc.layout}; }

class OnednnPrimitives final : public Primitives {
 public:
  OnednnPrimitives(int threads, DType dtype) : dtype_(dtype) {
    runtime_.threads = threads;
    widens_ = dtype != DType::float32 && !has_bfloat16(runtime_);
  }

  std::string name() const override { return "oneDNN " + version() + text_of_type(dtype_); }
  DType dtype() const noexcept override { return dtype_; }

  /// Concatenations are the plain loops', which copy whole rows.
  std::unique_ptr<Operation> make(const OperationSpec& operation, std::span<const TensorDesc> inputs,
                                  const OperationContext& context) override {
    using Made = std::unique_ptr<Operation>;
    const std::string what = kind_of(operation) + " of " + inputs.front().text();
    return std::visit(
        Overloaded{
            [&](const DenseSpec& spec) -> Made {
              if (spec.int8) return make_int8(runtime_, DenseProblem{spec, inputs.front()});
              return by_library(what + " to " + std::to_string(spec.outputs), inputs, [&](const TensorDesc& input) {
                return make_dense(runtime_, {spec, input}, context);
              });
            },
            [&](const ConvolutionSpec& spec) -> Made {
              if (spec.int8) return make_int8(runtime_, ConvolutionProblem{spec, inputs.front()});
              return by_library(
                  what + " to " + std::to_string(spec.outputs) + " channels with " + text_of_windows(spec), inputs,
                  [&](const TensorDesc& input) {
                    return make_convolution(runtime_, {spec, input}, context);
                  });
            },
            [&](const PoolSpec& spec) -> Made { return make_pool(runtime_, inputs.front(), spec, context); },
            [&](const ElementwiseSpec& spec) -> Made {
              if (spec.function == ElementwiseFunction::relu) return make_relu(runtime_, inputs.front());
              return by_library(what, inputs,
                                [&](const TensorDesc& input) { return make_elementwise(runtime_, input, spec); });
            },
            [&](const LayerNormSpec& spec) -> Made { return make_layer_norm(runtime_, inputs.front(), spec, context); },
            [&](const BatchNormSpec& spec) -> Made { return make_batch_norm(runtime_, inputs.front(), spec, context); },
            [&](const DropoutSpec& spec) -> Made { return make_dropout(runtime_, inputs.front(), spec, context); },
            [&](const AttentionSpec& spec) -> Made {
              if (dtype_ == DType::float32) return make_attention(runtime_, inputs.front(), spec, context);
              return widened(make_attention(runtime_, widened(inputs.front()), spec, context), inputs, dtype_);
            },
            [&](const AddSpec& spec) -> Made { return make_add(runtime_, inputs, spec); },
            [&](const ReorderSpec& spec) -> Made {
              return by_library(what + " to " + spec.to.text(), inputs, [&](const TensorDesc& input) {
                return make_reorder(runtime_, input, widens_ ? in(DType::float32, spec.to) : spec.to);
              });
            },
            [](const auto&) -> Made { return nullptr; }},
        operation);
  }

 private:
  /// What `make` makes of the input; in float32 where the library has nothing in bfloat16. Its errors become Ronda's,
  /// with what was being made.
  template <class Make>
  std::unique_ptr<Operation> by_library(const std::string& what, std::span<const TensorDesc> inputs,
                                        Make&& make) const {
    try {
      if (widens_) return widened(make(widened(inputs.front())), inputs, dtype_);
      return make(inputs.front());
    } catch (const dnnl::error& error) {
      throw Error("oneDNN " + version() + " cannot make a " + what + ": " + error.what());
    }
  }

  Runtime runtime_;
  DType dtype_;
  bool widens_;  ///< what the library does it does in float32
};

/// What the library may use here, of what it knows.
bool uses(dnnl_cpu_isa_t instructions) { return (dnnl_get_effective_cpu_isa() & instructions) == instructions; }

bool processor_has_bfloat16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

}  // namespace
}  // namespace ronda::onednn

std::unique_ptr<ronda::Primitives> ronda::make_onednn_primitives(int threads, DType dtype) {
  if (dtype != DType::float32 && dtype != DType::bfloat16)
    throw InputError("layers of the processor are float32 or bfloat16, not " + std::string(name_of(dtype)));
  return std::make_unique<onednn::OnednnPrimitives>(threads, dtype);
}

std::string ronda::vector_instructions() {
  if (onednn::has_avx512()) return "AVX-512";
  if (onednn::has_avx2()) return "AVX2";
  return onednn::uses(dnnl_cpu_isa_avx) ? "AVX" : "narrow vectors";
}

ronda::BFloat16Support ronda::bfloat16_support() {
  using onednn::uses;
  const std::string library = "oneDNN " + onednn::version();
  if (uses(dnnl_cpu_isa_avx512_core_amx)) return {true, "AMX and AVX-512 BF16, by " + library};
  if (uses(dnnl_cpu_isa_avx512_core_bf16)) return {true, "AVX-512 BF16, by " + library};
  if (!onednn::processor_has_bfloat16())
    return {
        false, "this processor has no instructions for it (no avx512_bf16 or amx_bf16 in /proc/cpuinfo)",
        "train in float32, or on an Intel Xeon from Cooper Lake or Sapphire Rapids on, or an AMD EPYC from Zen 4 on"};
  return {false, library + " does not use this processor's instructions for it",
          "take DNNL_MAX_CPU_ISA out of the environment, or build with a newer oneDNN"};
}
