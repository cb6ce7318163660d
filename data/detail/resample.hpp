#pragma once
#include <cstdint>
#include <vector>

#include <ronda/data/detail/picture.hpp>

namespace ronda {

/// Where along an axis the pixels of a result come from: the middle of pixel i is begin + (i + 1/2) scale in the
/// source, whose pixel k reaches from k to k + 1.
struct ResampleAxis {
  double begin = 0, scale = 1;
  std::int64_t low = 0, high = 0;  ///< source pixels that may be looked at: [low, high)
};

/// Makes pictures larger or smaller by bilinear interpolation, with a triangle filter as wide as the reduction, so that
/// no detail becomes noise (PIL's and PyTorch's antialias). Its memory is kept for the next one.
class Resampler {
 public:
  /// @param source  holds the pixels that the axes allow to look at
  /// @param result  float32 (size, size, 3), in 0..1
  void operator()(Picture& source, const ResampleAxis& vertical, const ResampleAxis& horizontal, std::int64_t size,
                  float* result);

 private:
  /// For each pixel of the result the first of the source's, and the weights of those from it on.
  struct Filter {
    void prepare(const ResampleAxis& axis, std::int64_t size);
    std::int64_t taps = 0;
    std::int64_t low = 0, high = 0;  ///< of the source's pixels those are looked at: [low, high)
    std::vector<std::int64_t> first;
    std::vector<float> weights;  ///< `taps` a pixel; zeros where it has fewer
  };

  void across(Picture& source, std::int64_t size);

  Filter rows_, columns_;
  std::vector<float> row_;          ///< one of the source's, and a number more
  std::vector<float> rows_across_;  ///< the source's rows that are needed, as wide as the result
};

}  // namespace ronda
