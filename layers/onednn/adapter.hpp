#pragma once
#include <dnnl.hpp>

#include <ronda/layers/operation_spec.hpp>

/// The one place that knows oneDNN 2 from oneDNN 3: in 3 an operation's description and its primitive's became one
/// thing, and descriptors of memory are opaque. Everything here says the same in both.
namespace ronda::onednn::adapter {

using dnnl::algorithm;
using dnnl::engine;
using dnnl::memory;
using dnnl::primitive_attr;
using dnnl::prop_kind;

/// Where the windows of a convolution lie.
struct Window {
  memory::dims strides, gaps, before, after;  ///< gaps: pixels between neighbouring elements of the kernel
  explicit Window(const ConvolutionSpec& spec)
      : strides{spec.stride.height, spec.stride.width},
        gaps{spec.dilation.height - 1, spec.dilation.width - 1},
        before{spec.padding.height, spec.padding.width},
        after{spec.padding.height + spec.trailing.height, spec.padding.width + spec.trailing.width} {}
};

#if DNNL_VERSION_MAJOR >= 3

inline bool is_empty(const memory::desc& d) { return !d || d.is_zero(); }
inline bool is_blocked(const memory::desc& d) { return d.get_format_kind() == memory::format_kind::blocked; }
inline memory::data_type type(const memory::desc& d) { return d.get_data_type(); }
inline memory::dims extents(const memory::desc& d) { return d.get_dims(); }
inline memory::dims padded_extents(const memory::desc& d) { return d.get_padded_dims(); }
inline memory::dims strides(const memory::desc& d) { return d.get_strides(); }
inline memory::dims block_sizes(const memory::desc& d) { return d.get_inner_blks(); }
inline memory::dims block_axes(const memory::desc& d) { return d.get_inner_idxs(); }

inline dnnl::convolution_forward::primitive_desc convolution_forward(const engine& e, algorithm a, const Window& w,
                                                                     const memory::desc& x, const memory::desc& weight,
                                                                     const memory::desc& bias, const memory::desc& y,
                                                                     const primitive_attr& attributes) {
  return {e, prop_kind::forward_training, a, x, weight, bias, y, w.strides, w.gaps, w.before, w.after, attributes};
}
inline dnnl::convolution_backward_data::primitive_desc convolution_backward_data(
    const engine& e, algorithm a, const Window& w, const memory::desc& dx, const memory::desc& weight,
    const memory::desc& dy, const dnnl::convolution_forward::primitive_desc& hint, const primitive_attr& attributes) {
  return {e, a, dx, weight, dy, w.strides, w.gaps, w.before, w.after, hint, attributes};
}
inline dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(
    const engine& e, algorithm a, const Window& w, const memory::desc& x, const memory::desc& dweight,
    const memory::desc& dy, const dnnl::convolution_forward::primitive_desc& hint, const primitive_attr& attributes) {
  return {e, a, x, dweight, dy, w.strides, w.gaps, w.before, w.after, hint, attributes};
}
inline dnnl::inner_product_forward::primitive_desc inner_product_forward(const engine& e, const memory::desc& x,
                                                                         const memory::desc& weight,
                                                                         const memory::desc& bias,
                                                                         const memory::desc& y,
                                                                         const primitive_attr& attributes) {
  return {e, prop_kind::forward_training, x, weight, bias, y, attributes};
}
inline dnnl::inner_product_backward_data::primitive_desc inner_product_backward_data(
    const engine& e, const memory::desc& dx, const memory::desc& weight, const memory::desc& dy,
    const dnnl::inner_product_forward::primitive_desc& hint, const primitive_attr& attributes) {
  return {e, dx, weight, dy, hint, attributes};
}
inline dnnl::inner_product_backward_weights::primitive_desc inner_product_backward_weights(
    const engine& e, const memory::desc& x, const memory::desc& dweight, const memory::desc& dy,
    const dnnl::inner_product_forward::primitive_desc& hint, const primitive_attr& attributes) {
  return {e, x, dweight, dy, hint, attributes};
}
inline dnnl::matmul::primitive_desc matmul(const engine& e, const memory::desc& a, const memory::desc& b,
                                           const memory::desc& bias, const memory::desc& c,
                                           const primitive_attr& attributes) {
  return {e, a, b, bias, c, attributes};
}

inline dnnl::eltwise_forward::primitive_desc eltwise_forward(const engine& e, algorithm a, const memory::desc& x,
                                                             float alpha) {
  return {e, prop_kind::forward_training, a, x, x, alpha};
}
inline dnnl::eltwise_backward::primitive_desc eltwise_backward(const engine& e, algorithm a, const memory::desc& x,
                                                               float alpha,
                                                               const dnnl::eltwise_forward::primitive_desc& hint) {
  return {e, a, x, x, x, alpha, hint};
}

#else

inline bool is_empty(const memory::desc& d) { return d.is_zero(); }
inline bool is_blocked(const memory::desc& d) { return d.data.format_kind == dnnl_blocked; }
inline memory::data_type type(const memory::desc& d) { return d.data_type(); }
inline memory::dims extents(const memory::desc& d) { return d.dims(); }
inline memory::dims padded_extents(const memory::desc& d) {
  return {d.data.padded_dims, d.data.padded_dims + d.data.ndims};
}
inline const dnnl_blocking_desc_t& blocking(const memory::desc& d) { return d.data.format_desc.blocking; }
inline memory::dims strides(const memory::desc& d) { return {blocking(d).strides, blocking(d).strides + d.data.ndims}; }
inline memory::dims block_sizes(const memory::desc& d) {
  return {blocking(d).inner_blks, blocking(d).inner_blks + blocking(d).inner_nblks};
}
inline memory::dims block_axes(const memory::desc& d) {
  return {blocking(d).inner_idxs, blocking(d).inner_idxs + blocking(d).inner_nblks};
}

inline dnnl::convolution_forward::primitive_desc convolution_forward(const engine& e, algorithm a, const Window& w,
                                                                     const memory::desc& x, const memory::desc& weight,
                                                                     const memory::desc& bias, const memory::desc& y,
                                                                     const primitive_attr& attributes) {
  return {{prop_kind::forward_training, a, x, weight, bias, y, w.strides, w.gaps, w.before, w.after}, attributes, e};
}
inline dnnl::convolution_backward_data::primitive_desc convolution_backward_data(
    const engine& e, algorithm a, const Window& w, const memory::desc& dx, const memory::desc& weight,
    const memory::desc& dy, const dnnl::convolution_forward::primitive_desc& hint, const primitive_attr& attributes) {
  return {{a, dx, weight, dy, w.strides, w.gaps, w.before, w.after}, attributes, e, hint};
}
inline dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(
    const engine& e, algorithm a, const Window& w, const memory::desc& x, const memory::desc& dweight,
    const memory::desc& dy, const dnnl::convolution_forward::primitive_desc& hint, const primitive_attr& attributes) {
  return {{a, x, dweight, dy, w.strides, w.gaps, w.before, w.after}, attributes, e, hint};
}
inline dnnl::inner_product_forward::primitive_desc inner_product_forward(const engine& e, const memory::desc& x,
                                                                         const memory::desc& weight,
                                                                         const memory::desc& bias,
                                                                         const memory::desc& y,
                                                                         const primitive_attr& attributes) {
  return {{prop_kind::forward_training, x, weight, bias, y}, attributes, e};
}
inline dnnl::inner_product_backward_data::primitive_desc inner_product_backward_data(
    const engine& e, const memory::desc& dx, const memory::desc& weight, const memory::desc& dy,
    const dnnl::inner_product_forward::primitive_desc& hint, const primitive_attr& attributes) {
  return {{dx, weight, dy}, attributes, e, hint};
}
inline dnnl::inner_product_backward_weights::primitive_desc inner_product_backward_weights(
    const engine& e, const memory::desc& x, const memory::desc& dweight, const memory::desc& dy,
    const dnnl::inner_product_forward::primitive_desc& hint, const primitive_attr& attributes) {
  return {{x, dweight, dy}, attributes, e, hint};
}
inline dnnl::matmul::primitive_desc matmul(const engine& e, const memory::desc& a, const memory::desc& b,
                                           const memory::desc& bias, const memory::desc& c,
                                           const primitive_attr& attributes) {
  return {{a, b, bias, c}, attributes, e};
}

inline dnnl::eltwise_forward::primitive_desc eltwise_forward(const engine& e, algorithm a, const memory::desc& x,
                                                             float alpha) {
  return {{prop_kind::forward_training, a, x, alpha}, e};
}
inline dnnl::eltwise_backward::primitive_desc eltwise_backward(const engine& e, algorithm a, const memory::desc& x,
                                                               float alpha,
                                                               const dnnl::eltwise_forward::primitive_desc& hint) {
  return {{a, x, x, alpha}, e, hint};
}

#endif

}  // namespace ronda::onednn::adapter
