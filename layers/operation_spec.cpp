#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/layers/activation_layouts.hpp>
#include <ronda/layers/custom_operation.hpp>
#include <ronda/layers/elementwise.hpp>
#include <ronda/layers/primitives.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace ronda {
namespace {

const Shape& only(std::span<const Shape> inputs, const char* what) {
  if (inputs.size() != 1)
    throw InputError(std::string(what) + " takes one input, not " + std::to_string(inputs.size()));
  return inputs.front();
}

/// The only input of what keeps the shape and treats channels apart.
const Shape& with_channels(std::span<const Shape> inputs, const char* what) {
  const Shape& shape = only(inputs, what);
  if (shape.rank() < 2) throw InputError(std::string(what) + " takes (N, …, channels), not " + shape.text());
  return shape;
}

Shape dense_output(const DenseSpec& spec, const Shape& in) {
  if (in.rank() != 2 && in.rank() != 3)
    throw InputError("a dense layer takes (N, features) or (N, T, features), not " + in.text() +
                     "; put a Flatten before it");
  if (spec.outputs < 1) throw InputError("a dense layer has at least one output");
  if (in.rank() == 3) return {in[0], in[1], spec.outputs};
  return {in[0], spec.outputs};
}

/// Windows of an image, or of a sequence.
struct Windows {
  const char* what;
  bool of_sequence;
  HeightWidth kernel, stride, padding, dilation = 1, trailing = 0;

  /// As the layer has it.
  [[nodiscard]] std::string text(const HeightWidth& value) const {
    return of_sequence ? std::to_string(value.width) : value.text();
  }
};

/// Whether windows have one row, so that sequences have such windows too.
bool fit_sequences(const HeightWidth& kernel, const HeightWidth& padding) {
  return kernel.height == 1 && padding.height == 0;
}

InputError not_images(const char* what, const Shape& in) {
  return InputError(std::string("a ") + what + " takes (N, H, W, C), or with windows of one row (N, T, C), not " +
                    in.text());
}

void require_from(std::int64_t least, const HeightWidth& value, std::string_view field, const Windows& windows) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (std::min(value.height, value.width) >= least && std::max(value.height, value.width) <= most) return;
  throw InputError(std::string(windows.what) + ": " + setting(field, windows.text(value)) + " is not from " +
                   std::to_string(least) + " to " + std::to_string(most));
}

/// (H + padding − dilation · (kernel − 1) − 1) / stride + 1, with the padding of both sides, and the same of W.
HeightWidth window_count(const HeightWidth& image, const Windows& windows) {
  const auto& [what, of_sequence, kernel, stride, padding, dilation, trailing] = windows;
  require_from(1, kernel, "kernel", windows);
  require_from(1, stride, "stride", windows);
  require_from(0, padding, "padding", windows);
  require_from(1, dilation, "dilation", windows);
  require_from(0, trailing, "trailing", windows);
  const std::int64_t height =
      image.height + 2 * padding.height + trailing.height - dilation.height * (kernel.height - 1) - 1;
  const std::int64_t width = image.width + 2 * padding.width + trailing.width - dilation.width * (kernel.width - 1) - 1;
  if (height < 0 || width < 0)
    throw InputError(
        std::string(what) + ": " + setting("kernel", windows.text(kernel)) +
        (dilation == 1 ? "" : " with " + setting("dilation", windows.text(dilation))) + " does not fit " +
        (of_sequence ? "sequences of " + std::to_string(image.width) + " steps"
                     : "images of " + std::to_string(image.height) + "x" + std::to_string(image.width) + " pixels") +
        " with " + setting("padding", windows.text(padding)));
  return {height / stride.height + 1, width / stride.width + 1};
}

void require_groups(const ConvolutionSpec& spec, std::int64_t channels) {
  const Message groups = "convolution: " + setting("groups", spec.groups);
  if (spec.groups < 1) throw InputError(groups + " is not at least 1");
  if (channels % spec.groups != 0)
    throw InputError(groups + " does not divide the " + std::to_string(channels) + " channels of the input");
  if (spec.outputs % spec.groups != 0)
    throw InputError(groups + " does not divide the " + std::to_string(spec.outputs) + " channels of the output");
}

Shape convolved(const ConvolutionSpec& spec, const Shape& in) {
  const Shape output = convolution_output(spec, in);
  return spec.pool ? pool_output(output, *spec.pool) : output;
}

Shape sum_output(std::span<const Shape> inputs) {
  if (inputs.size() < 2) throw InputError("an addition takes two inputs or more");
  for (const Shape& shape : inputs)
    if (shape != inputs.front())
      throw InputError("an addition takes inputs of one shape, not " + inputs.front().text() + " and " + shape.text());
  return inputs.front();
}

Shape concatenated(const ConcatSpec& spec, std::span<const Shape> inputs) {
  if (inputs.empty()) throw InputError("a concatenation takes one input or more");
  const Shape& first = inputs.front();
  if (spec.axis < 1 || spec.axis >= first.rank())
    throw InputError("a concatenation of " + first.text() + " goes along one of the axes 1 to " +
                     std::to_string(first.rank() - 1) + ", not " + std::to_string(spec.axis));
  std::vector<std::int64_t> extents(first.begin(), first.end());
  extents[static_cast<std::size_t>(spec.axis)] = 0;
  for (const Shape& shape : inputs) {
    bool fits = shape.rank() == first.rank();
    for (int axis = 0; fits && axis < first.rank(); ++axis) fits = axis == spec.axis || shape[axis] == first[axis];
    if (!fits)
      throw InputError("a concatenation along axis " + std::to_string(spec.axis) + " cannot join " + first.text() +
                       " and " + shape.text());
    extents[static_cast<std::size_t>(spec.axis)] += shape[spec.axis];
  }
  return Shape(extents);
}

Shape layer_normalized(const LayerNormSpec& spec, const Shape& in) {
  static_cast<void>(normalized_shape(spec, in));
  return in;
}

/// An element is added to the mean, and its squared distance to the variance; then it is shifted, scaled, and both
/// again.
constexpr double operations_of_norm = 8;

Shape embedded(const EmbeddingSpec& spec, const Shape& in) {
  if (spec.rows < 1 || spec.width < 1 || spec.rows > std::numeric_limits<std::int32_t>::max())
    throw InputError("an embedding has at least one row of at least one element, and rows that int32 counts, not " +
                     std::to_string(spec.rows) + " of " + std::to_string(spec.width));
  if (spec.padding < -1 || spec.padding >= spec.rows)
    throw InputError("the padding of an embedding is -1 or one of its " + std::to_string(spec.rows) + " rows, not " +
                     std::to_string(spec.padding));
  if (spec.bag && in.rank() != 2) throw InputError("an embedding bag takes (N, tokens), not " + in.text());
  if (spec.bag) return {in[0], spec.width};
  std::vector<std::int64_t> extents(in.begin(), in.end());
  extents.push_back(spec.width);
  return Shape(extents);
}

Shape with_positions(const PositionSpec& spec, const Shape& in) {
  if (in.rank() != 3) throw InputError("a positional embedding takes (N, T, width), not " + in.text());
  if (in[1] > spec.rows)
    throw InputError("a positional embedding of " + std::to_string(spec.rows) + " positions does not reach the " +
                     std::to_string(in[1]) + " of " + in.text());
  return in;
}

Shape attended(const AttentionSpec& spec, std::span<const Shape> inputs) {
  if (inputs.empty() || inputs.size() > 2) throw InputError("an attention takes one input, and lengths");
  const Shape& in = inputs.front();
  if (spec.heads < 1) throw InputError("an attention has at least one head, not " + std::to_string(spec.heads));
  if (in.rank() != 3 || in[2] % (3 * spec.heads) != 0)
    throw InputError("an attention of " + std::to_string(spec.heads) +
                     " heads takes (N, T, 3 · width), with a width that they divide, not " + in.text());
  if (!(spec.dropout >= 0 && spec.dropout <= 1))
    throw InputError("an attention's " + setting("dropout") + " is from 0 to 1, not " + std::to_string(spec.dropout));
  if (inputs.size() == 2 && inputs[1] != Shape{in[0]})
    throw InputError("an attention takes one length a sample, int32 (N), not " + inputs[1].text());
  return {in[0], in[1], in[2] / 3};
}

/// Of both products; half of it where no step reads a later one.
double flops_of_attention(const AttentionSpec& spec, const Shape& in) {
  const auto steps = static_cast<double>(in[1]), read = spec.causal ? (steps + 1) / 2 : steps;
  return 4.0 / 3 * static_cast<double>(in.count()) * read;
}

/// With the last axis of the whole, or of this rank's part.
Shape gathered_or_taken(const PartSpec& spec, Shape in) {
  const std::int64_t whole = std::accumulate(spec.widths.begin(), spec.widths.end(), std::int64_t{0});
  const std::int64_t part = spec.widths.at(spec.part);
  std::int64_t& width = in[in.rank() - 1];
  if (width != (spec.gathers ? part : whole))
    throw InputError("parts of " + std::to_string(whole) + " features do not fit " + in.text());
  width = spec.gathers ? whole : part;
  return in;
}

Shape flattened(const Shape& in) {
  if (in.rank() < 2) throw InputError("a flatten takes (N, …), not " + in.text());
  return {in[0], in.without_batch().count()};
}

}  // namespace

std::string kind_of(const OperationSpec& operation) {
  return std::visit(
      Overloaded{
          [](const DenseSpec&) -> std::string { return "dense"; },
          [](const ConvolutionSpec&) -> std::string { return "conv"; },
          [](const PoolSpec& spec) -> std::string {
            return spec.kind == PoolKind::maximum ? "max_pool" : "average_pool";
          },
          [](const ElementwiseSpec& spec) -> std::string {
            return elementwise::with_row(spec.function,
                                         [](auto row) { return std::string(decltype(row)::type::name); });
          },
          [](const LayerNormSpec&) -> std::string { return "layer_norm"; },
          [](const BatchNormSpec&) -> std::string { return "batch_norm"; },
          [](const DropoutSpec&) -> std::string { return "dropout"; },
          [](const AddSpec&) -> std::string { return "add"; },
          [](const ConcatSpec&) -> std::string { return "concat"; },
          [](const EmbeddingSpec& spec) -> std::string { return spec.bag ? "embedding_bag" : "embedding"; },
          [](const PositionSpec&) -> std::string { return "positional_embedding"; },
          [](const AttentionSpec&) -> std::string { return "attention"; },
          [](const FlattenSpec&) -> std::string { return "flatten"; },
          [](const ReorderSpec&) -> std::string { return "reorder"; },
          [](const PartSpec& spec) -> std::string { return spec.gathers ? "gather_parts" : "take_part"; },
          [](const std::shared_ptr<const CustomOperation>& own) -> std::string { return std::string(own->kind()); }},
      operation);
}

Shape output_shape(const OperationSpec& operation, std::span<const Shape> inputs) {
  return std::visit(
      Overloaded{[&](const DenseSpec& spec) { return dense_output(spec, only(inputs, "a dense layer")); },
                 [&](const ConvolutionSpec& spec) { return convolved(spec, only(inputs, "a convolution")); },
                 [&](const PoolSpec& spec) { return pool_output(only(inputs, "a pooling"), spec); },
                 [&](const ElementwiseSpec&) { return only(inputs, "a function of each element"); },
                 [&](const LayerNormSpec& spec) { return layer_normalized(spec, only(inputs, "a layer norm")); },
                 [&](const BatchNormSpec&) { return with_channels(inputs, "a batch norm"); },
                 [&](const DropoutSpec&) { return with_channels(inputs, "a dropout"); },
                 [&](const AddSpec&) { return sum_output(inputs); },
                 [&](const ConcatSpec& spec) { return concatenated(spec, inputs); },
                 [&](const EmbeddingSpec& spec) { return embedded(spec, only(inputs, "an embedding")); },
                 [&](const PositionSpec& spec) { return with_positions(spec, only(inputs, "a positional embedding")); },
                 [&](const AttentionSpec& spec) { return attended(spec, inputs); },
                 [&](const FlattenSpec&) { return flattened(only(inputs, "a flatten")); },
                 [&](const ReorderSpec&) { return only(inputs, "a reorder"); },
                 [&](const PartSpec& spec) { return gathered_or_taken(spec, only(inputs, "a part of features")); },
                 [&](const std::shared_ptr<const CustomOperation>& own) { return own->output(inputs); }},
      operation);
}

double flops_of(const OperationSpec& operation, std::span<const Shape> inputs) {
  const auto products = [&](const Shape& output, std::int64_t each) {
    return 2.0 * static_cast<double>(output.count()) * static_cast<double>(each);
  };
  const auto elements = [&] { return static_cast<double>(output_shape(operation, inputs).count()); };
  return std::visit(
      Overloaded{
          [&](const DenseSpec&) { return products(output_shape(operation, inputs), inputs[0][inputs[0].rank() - 1]); },
          [&](const ConvolutionSpec& spec) {
            return products(convolution_output(spec, inputs[0]),
                            inputs[0][inputs[0].rank() - 1] / spec.groups * spec.kernel.area());
          },
          [&](const PoolSpec& spec) { return elements() * static_cast<double>(spec.kernel.area()); },
          [&](const ElementwiseSpec&) { return elements(); },
          [&](const LayerNormSpec&) { return operations_of_norm * elements(); },
          [&](const BatchNormSpec&) { return operations_of_norm * elements(); },
          [&](const DropoutSpec&) { return elements(); },
          [&](const AddSpec&) { return elements() * static_cast<double>(inputs.size() - 1); },
          [&](const EmbeddingSpec& spec) {
            return spec.bag ? static_cast<double>(inputs[0].count() * spec.width) : 0.0;
          },
          [&](const PositionSpec&) { return elements(); },
          [&](const AttentionSpec& spec) { return flops_of_attention(spec, inputs[0]); },
          [](const auto&) { return 0.0; }},
      operation);
}

Shape convolution_output(const ConvolutionSpec& spec, const Shape& in) {
  const bool sequence = is_sequence(in);
  if (sequence ? !fit_sequences(spec.kernel, spec.padding) || spec.trailing.height != 0 : in.rank() != 4)
    throw not_images("convolution", in);
  if (spec.outputs < 1) throw InputError("a convolution has at least one output channel");
  const Shape image = image_of(in);
  require_groups(spec, image[3]);
  const HeightWidth windows = window_count({image[1], image[2]}, {"convolution", sequence, spec.kernel, spec.stride,
                                                                  spec.padding, spec.dilation, spec.trailing});
  if (sequence) return {in[0], windows.width, spec.outputs};
  return {in[0], windows.height, windows.width, spec.outputs};
}

Shape weight_shape(const ConvolutionSpec& spec, const Shape& in) {
  const std::int64_t channels = in[in.rank() - 1] / spec.groups;
  if (is_sequence(in)) return {spec.outputs, channels, spec.kernel.width};
  return {spec.outputs, channels, spec.kernel.height, spec.kernel.width};
}

std::string text_of_windows(const ConvolutionSpec& spec) {
  std::string text =
      "kernel " + spec.kernel.text() + " stride " + spec.stride.text() + " padding " + spec.padding.text();
  if (spec.trailing != 0) text += " trailing " + spec.trailing.text();
  if (spec.dilation != 1) text += " dilation " + spec.dilation.text();
  if (spec.groups != 1) text += " groups " + std::to_string(spec.groups);
  return text;
}

Shape pool_output(const Shape& in, const PoolSpec& spec) {
  const bool sequence = is_sequence(in);
  if (sequence ? !fit_sequences(spec.kernel, spec.padding) : in.rank() != 4) throw not_images("pooling", in);
  const Shape image = image_of(in);
  const Windows all{"pooling", sequence, spec.kernel, spec.stride, spec.padding};
  const HeightWidth windows = window_count({image[1], image[2]}, all);
  // A window could lie in the padding alone.
  if (2 * spec.padding.height > spec.kernel.height || 2 * spec.padding.width > spec.kernel.width)
    throw InputError("pooling: " + setting("padding", all.text(spec.padding)) + " is more than half of " +
                     setting("kernel", all.text(spec.kernel)));
  if (sequence) return {in[0], windows.width, in[2]};
  return {in[0], windows.height, windows.width, in[3]};
}

PoolSpec global_average(const Shape& in) {
  if (in.rank() != 3 && in.rank() != 4) throw not_images("pooling", in);
  const Shape image = image_of(in);
  return {PoolKind::average, {image[1], image[2]}, 1, 0};
}

Shape normalized_shape(const LayerNormSpec& spec, const Shape& in) {
  const bool image = in.rank() == 4;
  if (spec.axes < 1 || spec.axes >= in.rank() || (image && spec.axes == 2))
    throw InputError("a layer norm of " + in.text() + " goes over the last axis or " +
                     (image ? "the last 3" : "up to " + std::to_string(in.rank() - 1)) + ", not " +
                     std::to_string(spec.axes));
  if (in.count() == 0) throw InputError("a layer norm of " + in.text() + " has nothing to normalise");
  if (!(spec.epsilon >= 0)) throw InputError("a layer norm's epsilon is at least 0, not " + shortest(spec.epsilon));
  if (image && spec.axes == 3) return {in[3], in[1], in[2]};
  return Shape(std::vector<std::int64_t>(in.end() - spec.axes, in.end()));
}

}  // namespace ronda
