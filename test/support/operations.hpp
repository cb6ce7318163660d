#pragma once
#include <array>
#include <memory>
#include <tuple>

#include <ronda/layers/elementwise.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda::test {

// One operation of a device, as tests ask for it.

/// Every row of elementwise.hpp.
inline constexpr auto every_function = [] {
  std::array<ElementwiseFunction, std::tuple_size_v<elementwise::Functions>> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<ElementwiseFunction>(i);
  return all;
}();

inline std::unique_ptr<Operation> make_dense(Primitives& primitives, const TensorDesc& input, const DenseSpec& spec,
                                             const OperationContext& context) {
  return primitives.make(spec, {&input, 1}, context);
}
inline std::unique_ptr<Operation> make_convolution(Primitives& primitives, const ConvolutionProblem& problem,
                                                   const OperationContext& context) {
  return primitives.make(static_cast<const ConvolutionSpec&>(problem), {&problem.input, 1}, context);
}
inline std::unique_ptr<Operation> make_pool(Primitives& primitives, const TensorDesc& input, const PoolSpec& spec,
                                            const OperationContext& context) {
  return primitives.make(spec, {&input, 1}, context);
}
inline std::unique_ptr<Operation> make_relu(Primitives& primitives, const TensorDesc& input,
                                            const OperationContext& context) {
  return primitives.make(ElementwiseSpec{ElementwiseFunction::relu}, {&input, 1}, context);
}
inline std::unique_ptr<Operation> make_elementwise(Primitives& primitives, ElementwiseFunction function,
                                                   const TensorDesc& input, const OperationContext& context) {
  return primitives.make(ElementwiseSpec{function}, {&input, 1}, context);
}
inline std::unique_ptr<Operation> make_reorder(Primitives& primitives, const TensorDesc& from, const TensorDesc& to,
                                               const OperationContext& context) {
  return primitives.make(ReorderSpec{to}, {&from, 1}, context);
}

}  // namespace ronda::test
