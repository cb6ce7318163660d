#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/number.hpp>
#include <ronda/layers/primitives.hpp>

#include "layers/comparison.hpp"
#include "support/catch.hpp"
#include "support/operations.hpp"

namespace ronda::test {

inline constexpr float garbage = std::numeric_limits<float>::quiet_NaN();

/// What random numbers are made; null: nothing.
using Draw = float (*)(float);

/// Random numbers by logical index: the same in every layout, rounded to the tensor's type. Padding is left alone.
inline void fill(const Tensor& tensor, std::uint64_t stream, float scale = 1, Draw draw = nullptr) {
  const TensorDesc exact{tensor.shape(), DType::float32, {}}, plain{tensor.shape(), tensor.dtype(), {}};
  std::vector<float> values = random_numbers(plain.count(), stream, scale);
  if (draw != nullptr) std::ranges::transform(values, values.begin(), draw);
  const Buffer rounded = Buffer::host(plain.bytes());
  convert(Tensor(exact, values.data()), Tensor(plain, rounded.data()));
  reorder(Tensor(plain, rounded.data()), tensor);
}

inline std::vector<float> plain_copy(const Tensor& tensor) {
  const TensorDesc plain{tensor.shape(), tensor.dtype(), {}};
  const Buffer values = Buffer::host(plain.bytes());
  reorder(tensor, Tensor(plain, values.data()));
  return floats_of(Tensor(plain, values.data()));
}

/// Whether the elements that belong to no logical index are 0.
inline bool padding_is_zero(const Tensor& tensor) {
  std::vector<float> kept = floats_of(tensor), zero(kept.size());
  std::vector<float> nothing(static_cast<std::size_t>(tensor.desc().count()));
  reorder(Tensor({tensor.shape(), DType::float32, {}}, nothing.data()),
          Tensor({tensor.shape(), DType::float32, tensor.desc().layout}, kept.data()));
  return kept == zero;
}

/// Memory for one tensor.
struct Owned {
  Buffer memory;
  Tensor tensor;
  Owned(const TensorDesc& desc, float initial) : memory(Buffer::host(desc.bytes())), tensor(desc, memory.data()) {
    with_number(desc.dtype,
                [&]<class T>(std::type_identity<T>) { std::ranges::fill(tensor.as<T>(), as_number<T>(initial)); });
  }
};

struct ReadyOrder {
  std::vector<ParameterId> ids;
  void mark_ready(ParameterId id, Stream&) { ids.push_back(id); }
};

/// An operation with memory of its own: scratch and outputs start as garbage, arenas of parameters as zeros.
class Bench {
 public:
  Bench(Operation& operation, const TensorDesc& input, bool input_gradient = true, Draw draw = nullptr)
      : operation_(operation),
        plan_(operation.plan()),
        input_(input, 0),
        output_(plan_.output, garbage),
        output_gradient_(plan_.output, 0),
        input_gradient_(input, garbage),
        pass_(Buffer::host(plan_.pass_bytes)),
        scratch_(Buffer::host(plan_.scratch_bytes)) {
    std::fill_n(scratch_.data(), plan_.scratch_bytes, std::byte{0xff});
    fill(input_.tensor, 1, 1, draw);
    fill(output_gradient_.tensor, 2, 1, draw);
    for (std::size_t i = 0; i < plan_.parameters.size(); ++i) {
      values_.emplace_back(plan_.parameters[i], 0);
      gradients_.emplace_back(plan_.parameters[i], 0);
      fill(values_.back().tensor, 3 + i, 0.5F, draw);
      parameters_.push_back(
          {ParameterId{static_cast<std::uint32_t>(i)}, "p", values_.back().tensor, gradients_.back().tensor, {}, {}});
    }
    OperationMemory memory{.output = output_.tensor,
                           .input_gradients = {input_gradient ? input_gradient_.tensor : Tensor()},
                           .pass = pass_.data(),
                           .scratch = scratch_.data()};
    for (Parameter& parameter : parameters_) memory.parameters.push_back(&parameter);
    operation.bind(memory);
  }

  /// Change it before forward.
  [[nodiscard]] const Tensor& input() const { return input_.tensor; }
  /// Change it before backward.
  [[nodiscard]] const Tensor& output_gradient() const { return output_gradient_.tensor; }
  [[nodiscard]] const Parameter& parameter(std::size_t index) const { return parameters_[index]; }

  std::vector<float> forward(int threads = 1) {
    CpuStream stream(threads);
    operation_.forward({&input_.tensor, 1}, pass_on(stream));
    return plain_copy(output_.tensor);
  }
  /// As a test within a training.
  std::vector<float> evaluate() {
    CpuStream stream(1);
    Pass pass = pass_on(stream);
    pass.mode = Mode::evaluation;
    operation_.forward({&input_.tensor, 1}, pass);
    return plain_copy(output_.tensor);
  }
  /// Of the input, then of the parameters.
  std::vector<std::vector<float>> backward(int threads = 1) {
    CpuStream stream(threads);
    ReadyOrder ready;
    const std::vector<float> before = plain_copy(output_gradient_.tensor);
    operation_.backward({&input_.tensor, 1}, output_gradient_.tensor, pass_on(stream).reporting(ready));
    CHECK(plain_copy(output_gradient_.tensor) == before);
    CHECK(ready.ids.size() == parameters_.size());
    std::vector<std::vector<float>> all{plain_copy(input_gradient_.tensor)};
    for (const Owned& gradient : gradients_) all.push_back(plain_copy(gradient.tensor));
    return all;
  }
  /// Of what was written; what an optimizer or a neighbour would carry on.
  [[nodiscard]] bool padding_is_zero() const {
    return test::padding_is_zero(output_.tensor) && test::padding_is_zero(input_gradient_.tensor) &&
           std::all_of(gradients_.begin(), gradients_.end(),
                       [](const Owned& gradient) { return test::padding_is_zero(gradient.tensor); });
  }

 private:
  static Pass pass_on(Stream& stream) { return {.stream = stream, .on_ready = {}}; }

  Operation& operation_;
  OperationPlan plan_;
  Owned input_, output_, output_gradient_, input_gradient_;
  Buffer pass_, scratch_;
  std::vector<Owned> values_, gradients_;
  std::vector<Parameter> parameters_;
};

/// Makes the operation with each candidate in turn, and with some mixtures of them, and compares it with the plain
/// loops.
template <class Make>
void compare(const std::string& what, const TensorDesc& input, Make make, float tolerance = 1e-5F) {
  const auto plain = make_reference_primitives();
  FirstPicker first;
  const auto reference = make(*plain, OperationContext{first});
  Bench expected(*reference, input);
  const auto output = expected.forward();
  const auto gradients = expected.backward();
  const auto library = make_onednn_primitives(1);
  const auto check_picked = [&](Picker& picker) {
    const auto operation = make(*library, OperationContext{picker});
    const std::string name = what + " [" + operation->plan().picks + "]";
    Bench found(*operation, input);
    for (int round = 0; round < 2; ++round) {  // the second on what the first left behind
      check_close(name + " output", found.forward(), output, tolerance);
      const auto all = found.backward();
      check_close(name + " input gradient", all[0], gradients[0], tolerance);
      for (std::size_t i = 1; i < all.size(); ++i)
        check_close(name + " parameter gradient", all[i], gradients[i], tolerance);
      INFO(name);
      CHECK(found.padding_is_zero());
    }
  };
  std::size_t candidates = 1;
  for (std::size_t wanted = 0; wanted < candidates; ++wanted) {
    ForcingPicker picker(wanted);
    check_picked(picker);
    candidates = std::max(candidates, picker.most());
  }
  for (std::uint64_t seed = 0; seed < 4 && candidates > 1; ++seed) {
    MixingPicker picker(seed);
    check_picked(picker);
  }
}

inline TensorDesc image(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c, const char* layout = "plain") {
  return {Shape{n, h, w, c}, DType::float32, Layout::parse(layout)};
}

}  // namespace ronda::test
