#pragma once
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/tensor.hpp>
#include <ronda/layers/onednn/adapter.hpp>
#include <ronda/layers/operation.hpp>

namespace ronda::onednn {

/// What the operations of one Primitives share.
struct Runtime {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  int threads = 1;
};

/// A primitive and its arguments, made once: a run sets addresses and executes, and allocates nothing of ours.
class Kernel {
 public:
  struct Argument {
    int name;  ///< DNNL_ARG_…
    dnnl::memory::desc desc;
  };
  Kernel(const Runtime& runtime, const dnnl::primitive& primitive, std::span<const Argument> arguments);

  /// @param data  one address for each argument, in their order
  void run(std::span<void* const> data);

 private:
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  std::vector<void*> addresses_;  ///< what the memories point at
};

/// A copy from one layout to another.
Kernel make_reorder(const Runtime& runtime, const dnnl::memory::desc& from, const dnnl::memory::desc& to);
/// The same for a convolution's weight.
Kernel make_weight_reorder(const Runtime& runtime, const TensorDesc& from, const TensorDesc& to);

/// One direction of an operation: a primitive, and the reorders that lie between the layouts it wants and those that
/// its caller has. For the caller it is a function from tensors to a tensor.
class Computation {
 public:
  struct Argument {
    int name;                          ///< DNNL_ARG_…
    dnnl::memory::desc given, wanted;  ///< how the caller's bytes lie, how the primitive's; equal ones cost nothing
  };
  static constexpr std::size_t max_inputs = 3;

  /// Attributes that the primitive must have been made with: its scratch memory is the caller's.
  static dnnl::primitive_attr attributes();

  Computation(const Runtime& runtime, const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
              const std::vector<Argument>& inputs, const Argument& output);

  /// @param inputs   in the order in which they were declared; not written to
  /// @param scratch  `scratch_bytes()` bytes, aligned to Buffer::alignment
  void run(std::initializer_list<const void*> inputs, void* output, std::byte* scratch) {
    execute({inputs.begin(), inputs.size()}, output, scratch);
  }

  [[nodiscard]] std::size_t scratch_bytes() const noexcept { return scratch_bytes_; }
  /// How the caller's bytes of an input or the output lie.
  [[nodiscard]] const dnnl::memory::desc& input(std::size_t index) const noexcept { return inputs_[index].given; }
  [[nodiscard]] const dnnl::memory::desc& output() const noexcept { return output_.given; }

  /// One run on `memory` of `rehearsal_bytes()`, for timing.
  void rehearse(std::byte* memory);
  [[nodiscard]] std::size_t rehearsal_bytes() const;

 private:
  void execute(std::span<const void* const> inputs, void* output, std::byte* scratch);

  struct Place {
    dnnl::memory::desc given;
    std::unique_ptr<Kernel> reorder;  ///< empty where the bytes lie right already
    std::size_t offset = 0;           ///< of the primitive's bytes in scratch, where there is a reorder
  };

  std::vector<Place> inputs_;
  Place output_;
  std::unique_ptr<Kernel> kernel_;
  std::size_t scratchpad_offset_ = 0, scratch_bytes_ = 0;
};

/// True for an implementation that the library falls back to (plain loops, unfolding into a matrix product): mostly
/// slow.
[[nodiscard]] bool is_fallback(const std::string& implementation);

/// A candidate; `computation` is empty if this processor or library does not support it.
struct Option {
  std::string name;
  std::unique_ptr<Computation> computation;
  double counts = 1;      ///< as Candidate::counts
  std::size_t times = 1;  ///< number of computations in a run
};

/// What `make` returns; empty where the library refuses.
template <class Make>
std::unique_ptr<Computation> if_possible(Make&& make) {
  try {
    return make();
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

/// The picker's choice, each option timed on memory of its own; `ours` are more that are no primitives, and the answer
/// then has no computation. Throws Error where there is nothing to choose.
/// @param before  what the options need done first, on memory of its own, and `ours` do not; timed with them
Option pick(Picker& picker, const std::string& question, std::vector<Option> options,
            std::span<const Candidate> ours = {}, const std::function<void()>& before = nullptr);

}  // namespace ronda::onednn
