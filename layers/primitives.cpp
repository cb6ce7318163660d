#include <ronda/core/error.hpp>
#include <ronda/core/names.hpp>
#include <ronda/layers/primitives.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace ronda {
namespace {

constexpr EnumNames<Precision, 4> names{{{Precision::float32, "float32"},
                                         {Precision::tf32, "tf32"},
                                         {Precision::mixed_bfloat16, "mixed_bfloat16"},
                                         {Precision::mixed_float16, "mixed_float16"}}};

constexpr EnumNames<DType, 2> reduce_dtypes{{{DType::bfloat16, "bfloat16"}, {DType::float32, "float32"}}};

}  // namespace

Precision parse_precision(std::string_view name) {
  return parse_name(names, name, "a type to compute in (" + setting("precision") + ")");
}
DType parse_reduce_dtype(std::string_view name) {
  return parse_name(reduce_dtypes, name, "a type to sum gradients in (" + setting("reduce_dtype") + ")");
}
std::string_view name_of(Precision precision) noexcept { return find_name(names, precision); }

OperationPlan plan_of_function(const TensorDesc& input, bool backward_reads_input, std::string picks) {
  return {.output = input,
          .picks = std::move(picks),
          .backward_reads_inputs = backward_reads_input,
          .backward_reads_output = !backward_reads_input,
          .in_place = true};
}

OperationPlan plan_of_sum(std::span<const TensorDesc> inputs, const AddSpec& spec, std::string picks) {
  for (const TensorDesc& input : inputs)
    if (input != inputs.front())
      throw LogicError("an addition cannot read " + inputs.front().text() + " beside " + input.text());
  const bool relu = spec.activation == Activation::relu;
  return {.output = inputs.front(),
          .picks = std::move(picks),
          .backward_reads_inputs = false,
          .backward_reads_output = relu,
          .in_place = true,
          .gradients = relu ? InputGradients::common : InputGradients::output};
}

Columns columns_of(std::span<const TensorDesc> inputs, const ConcatSpec& spec, std::string picks) {
  Columns columns;
  std::vector<Shape> shapes;
  const TensorDesc& first = inputs.front();
  for (const TensorDesc& input : inputs) {
    if (!same_bytes(input, {input.shape, first.dtype, {}}))
      throw LogicError("a concatenation cannot read " + input.text());
    shapes.push_back(input.shape);
    columns.widths.push_back(1);
    for (int axis = spec.axis; axis < input.shape.rank(); ++axis) columns.widths.back() *= input.shape[axis];
    columns.whole += columns.widths.back();
  }
  for (int axis = 0; axis < spec.axis; ++axis) columns.rows *= first.shape[axis];
  columns.plan = {.output = {output_shape(spec, shapes), first.dtype, {}},
                  .picks = std::move(picks),
                  .backward_reads_inputs = false,
                  .backward_reads_output = false};
  return columns;
}

AttentionLengths::AttentionLengths(Inputs inputs, std::int64_t steps) : steps_(steps) {
  if (inputs.size() < 2) return;
  const auto lengths = inputs[1].as<const std::int32_t>();
  lengths_ = lengths.data();
  const auto wrong = std::ranges::find_if(lengths, [=](std::int32_t length) { return length < 0 || length > steps; });
  if (wrong != lengths.end())
    throw InputError("sample " + std::to_string(wrong - lengths.begin()) + " of the batch has length " +
                     std::to_string(*wrong) + "; an attention's are 0 to " + std::to_string(steps));
}

OperationPlan plan_of_norm(const TensorDesc& input, const BatchNormSpec& spec, std::size_t numbers, std::string picks) {
  const TensorDesc channels{{input.shape[input.shape.rank() - 1]}, input.dtype, {}};
  return {.output = input,
          .parameters = std::vector<TensorDesc>(spec.affine ? 2 : 0, channels),
          .rank_sums = spec.synchronized ? numbers : 0,
          .picks = std::move(picks),
          .backward_reads_output = false};
}

void move_running_values(const BatchNormSpec& spec, float& running_mean, float& running_variance, double mean,
                         double variance, double count) {
  if (!std::isfinite(mean) || !std::isfinite(variance) || count < 2) return;
  const double momentum = spec.momentum, unbiased = variance * count / (count - 1);
  running_mean = static_cast<float>((1 - momentum) * running_mean + momentum * mean);
  running_variance = static_cast<float>((1 - momentum) * running_variance + momentum * unbiased);
}

NormalizedRows rows_of(const TensorDesc& input, const LayerNormSpec& spec, std::string picks) {
  if (!same_bytes(input, {input.shape, input.dtype, {}})) throw LogicError("a layer norm cannot read " + input.text());
  const Shape& shape = input.shape;
  const bool whole_images = shape.rank() == 4 && spec.axes == 3;
  const TensorDesc parameter{normalized_shape(spec, shape), input.dtype,
                             whole_images ? Layout::parse("bca") : Layout()};
  NormalizedRows result{.rows = shape.count() / parameter.count(), .width = parameter.count(), .plan = {}};
  result.plan = {.output = {shape, input.dtype, {}}, .picks = std::move(picks), .backward_reads_output = false};
  if (spec.affine) result.plan.parameters.assign(spec.bias ? 2 : 1, parameter);
  return result;
}

}  // namespace ronda
