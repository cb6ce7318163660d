#include <ronda/core/error.hpp>
#include <ronda/layers/onednn/memory_desc.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace ronda::onednn {
namespace {

using dnnl::memory;

memory::data_type library_type(DType dtype) {
  switch (dtype) {
    case DType::float32: return memory::data_type::f32;
    case DType::bfloat16: return memory::data_type::bf16;
    default: throw LogicError("no layer of oneDNN computes with " + std::string(name_of(dtype)));
  }
}

std::optional<DType> dtype_of(memory::data_type type) {
  for (const DType dtype : {DType::float32, DType::bfloat16})
    if (library_type(dtype) == type) return dtype;
  return std::nullopt;
}

/// Ronda's axis that is oneDNN's axis `place`.
int axis_at(int place, int rank, Axes axes) {
  static constexpr std::array nchw{0, 3, 1, 2};
  return axes == Axes::image && rank == 4 ? nchw[static_cast<std::size_t>(place)] : place;
}

memory::dims dims_of(const Shape& shape, Axes axes) {
  memory::dims dims;
  for (int place = 0; place < shape.rank(); ++place) dims.push_back(shape[axis_at(place, shape.rank(), axes)]);
  return dims;
}

Shape shape_of(const memory::dims& dims, Axes axes) {
  const int rank = static_cast<int>(dims.size());
  std::vector<std::int64_t> extents(dims.size());
  for (int place = 0; place < rank; ++place)
    extents[static_cast<std::size_t>(axis_at(place, rank, axes))] = dims[static_cast<std::size_t>(place)];
  return Shape(extents);
}

/// The order of Ronda's axes by stride, outermost first.
std::vector<int> order_of(const memory::dims& strides, Axes axes) {
  const int rank = static_cast<int>(strides.size());
  std::vector<int> places(strides.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](int a, int b) {
    return strides[static_cast<std::size_t>(a)] > strides[static_cast<std::size_t>(b)];
  });
  for (int& place : places) place = axis_at(place, rank, axes);
  return places;
}

/// Whether `tensor`'s outer axes have the strides that the library says; an axis of one step has none that matter.
bool has_strides(const TensorDesc& tensor, const memory::desc& md, Axes axes) {
  const memory::dims strides = adapter::strides(md), padded = adapter::padded_extents(md);
  const auto expected = tensor.layout.outer_strides(tensor.shape);
  for (int place = 0; place < static_cast<int>(strides.size()); ++place) {
    const int axis = axis_at(place, static_cast<int>(strides.size()), axes);
    std::int64_t steps = padded[static_cast<std::size_t>(place)];
    for (const auto& block : tensor.layout.blocks())
      if (block.axis == axis) steps /= block.size;
    if (steps > 1 && strides[static_cast<std::size_t>(place)] != expected[static_cast<std::size_t>(axis)]) return false;
  }
  return true;
}

}  // namespace

std::optional<TensorDesc> to_tensor_desc(const memory::desc& md, Axes axes) {
  const auto dtype = dtype_of(adapter::type(md));
  if (!adapter::is_blocked(md) || !dtype) return std::nullopt;
  const memory::dims dims = adapter::extents(md), sizes = adapter::block_sizes(md), places = adapter::block_axes(md);
  if (dims.size() > Shape::capacity || sizes.size() > Layout::max_blocks) return std::nullopt;
  std::vector<Layout::Block> blocks;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    blocks.push_back({axis_at(static_cast<int>(places[i]), static_cast<int>(dims.size()), axes), sizes[i]});
  const Shape shape = shape_of(dims, axes);
  const TensorDesc tensor{shape, *dtype, Layout(order_of(adapter::strides(md), axes), blocks)};
  if (tensor.bytes() != md.get_size() || !has_strides(tensor, md, axes)) return std::nullopt;
  const TensorDesc plain{shape, *dtype, {}};  // one value for what is row-major but for axes of extent 1
  return ronda::same_bytes(tensor, plain) ? plain : tensor;
}

memory::desc any_layout(const Shape& shape, Axes axes, DType dtype) {
  return {dims_of(shape, axes), library_type(dtype), memory::format_tag::any};
}

memory::desc plain_layout(const Shape& shape, Axes axes, DType dtype) {
  return to_memory_desc({shape, dtype, {}}, axes);
}

memory::desc to_memory_desc(const TensorDesc& tensor, Axes axes) {
  const memory::dims dims = dims_of(tensor.shape, axes);
  const memory::data_type type = library_type(tensor.dtype);
  if (tensor.layout.blocks().empty()) {
    const auto strides = tensor.layout.outer_strides(tensor.shape);
    memory::dims permuted;
    for (int place = 0; place < tensor.shape.rank(); ++place)
      permuted.push_back(strides[static_cast<std::size_t>(axis_at(place, tensor.shape.rank(), axes))]);
    return {dims, type, permuted};
  }
  // Blocks can only be asked for by name: try the library's names.
  for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; ++tag) {
    const memory::desc md(dims, type, static_cast<memory::format_tag>(tag), /*allow_empty=*/true);
    if (adapter::is_empty(md) || md.get_size() != tensor.bytes()) continue;
    const auto found = to_tensor_desc(md, axes);
    if (found && ronda::same_bytes(*found, tensor)) return md;
  }
  throw LogicError("oneDNN has no name for the layout of " + tensor.text());
}

bool same_bytes(const memory::desc& a, const memory::desc& b) {
  if (a == b) return true;
  const auto x = to_tensor_desc(a, Axes::weight), y = to_tensor_desc(b, Axes::weight);
  return x && y && ronda::same_bytes(*x, *y);
}

}  // namespace ronda::onednn
