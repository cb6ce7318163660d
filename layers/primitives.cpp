#include <ronda/core/error.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda {

std::int64_t window_count(std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                          const char* what) {
  if (kernel < 1 || stride < 1 || padding < 0)
    throw InputError(std::string(what) + ": kernel and stride are at least 1 and padding at least 0, not " +
                     std::to_string(kernel) + ", " + std::to_string(stride) + ", " + std::to_string(padding));
  if (extent + 2 * padding < kernel)
    throw InputError(std::string(what) + ": a kernel of " + std::to_string(kernel) + " does not fit " +
                     std::to_string(extent) + " pixels with " + std::to_string(padding) + " of padding on each side");
  return (extent + 2 * padding - kernel) / stride + 1;
}

Shape convolution_output(const ConvolutionSpec& spec) {
  const Shape& in = spec.input.shape;
  if (in.rank() != 4) throw InputError("a convolution takes (N, H, W, C), not " + in.text());
  if (spec.outputs < 1) throw InputError("a convolution has at least one output channel");
  return {in[0], window_count(in[1], spec.kernel, spec.stride, spec.padding, "convolution"),
          window_count(in[2], spec.kernel, spec.stride, spec.padding, "convolution"), spec.outputs};
}

Shape pool_output(const Shape& in, const PoolSpec& spec) {
  if (in.rank() != 4) throw InputError("a pooling takes (N, H, W, C), not " + in.text());
  if (2 * spec.padding > spec.kernel)  // a window could lie in the padding alone
    throw InputError("pooling: padding " + std::to_string(spec.padding) + " is more than half of kernel " +
                     std::to_string(spec.kernel));
  return {in[0], window_count(in[1], spec.kernel, spec.stride, spec.padding, "pooling"),
          window_count(in[2], spec.kernel, spec.stride, spec.padding, "pooling"), in[3]};
}

}  // namespace ronda
