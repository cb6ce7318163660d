#pragma once
#include <cmath>
#include <cstdint>

#include <ronda/core/host_device.hpp>
#include <ronda/core/number.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/layers/arithmetic.hpp>
#include <ronda/layers/cudnn/run.hpp>
#include <ronda/layers/elementwise.hpp>

/// What our own kernels compute, a call for one element. Each call writes its own elements and no other, so the order
/// of calls does not matter and every run has the same bits. The host runs the same code in tests. Numbers of type T
/// are stored; all is computed in float32, and rounded when it is written.
namespace ronda::cudnn {

/// The same numbers in another type.
template <Number From, Number To>
struct Convert {
  const From* from;
  To* to;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const { to[i] = as_number<To>(as_float(from[i])); }
};

/// Matrices (rows, columns), one after another, as (columns, rows).
template <Number T>
struct Transpose {
  const T* from;
  T* to;
  std::int64_t rows, columns;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t place = i % (rows * columns);
    to[i] = from[i - place + place % rows * columns + place / rows];
  }
};

/// y = y + bias, then max(y, 0) as `rectified` has it, in place; y (rows, channels). A call for one run.
template <Number T, int width = 1>
struct AddBias {
  Run<T, width>* y;
  const Run<T, width>* bias;  ///< null: none
  std::int64_t channels;      ///< in runs
  bool relu;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    Run<T, width> run = y[i], more{};
    if (bias != nullptr) more = bias[place_of(i, 1, 1, channels).run];
    for (int k = 0; k < width; ++k) {
      const float value = as_float(number(run, k)) + (bias != nullptr ? as_float(number(more, k)) : 0.0F);
      number(run, k) = as_number<T>(relu ? rectified(value) : value);
    }
    y[i] = run;
  }
};

/// y = f(x), a row of elementwise.hpp; y may be x.
template <class Row, Number T>
struct Elementwise {
  const T* x;
  T* y;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const { y[i] = as_number<T>(Row::value(as_float(x[i]))); }
};
template <class Row, Number T>
struct ElementwiseGradient {
  const T* kept;  ///< x or y, as the row says
  const T* dy;
  T* dx;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    dx[i] = as_number<T>(Row::gradient(as_float(kept[i]), as_float(dy[i])));
  }
};

template <Number T>
struct Add {
  const T* a;
  const T* b;
  T* y;  ///< may be a
  bool relu;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    const float sum = as_float(a[i]) + as_float(b[i]);
    y[i] = as_number<T>(relu ? rectified(sum) : sum);
  }
};

/// Columns of one matrix that become columns of another; `to` and `from` point at the first.
template <Number T>
struct CopyColumns {
  const T* from;
  T* to;
  std::int64_t columns, from_width, to_width;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    to[i / columns * to_width + i % columns] = from[i / columns * from_width + i % columns];
  }
};

/// dz = dy where the ReLU let something through, a NaN included.
template <Number T>
using ReluGradient = ElementwiseGradient<elementwise::Relu, T>;

/// Windows along one direction of an image.
struct PoolDirection {
  std::int64_t extent, windows, kernel, stride, padding;

  /// The first real element of a window, and the place behind the last.
  [[nodiscard]] RONDA_HOST_DEVICE std::int64_t begin(std::int64_t window) const {
    const std::int64_t at = window * stride - padding;
    return at > 0 ? at : 0;
  }
  [[nodiscard]] RONDA_HOST_DEVICE std::int64_t end(std::int64_t window) const {
    const std::int64_t behind = window * stride - padding + kernel;
    return behind < extent ? behind : extent;
  }
  /// The first window that an element lies in, and whether it lies in that one or another behind it.
  [[nodiscard]] RONDA_HOST_DEVICE std::int64_t first_window(std::int64_t element) const {
    const std::int64_t behind = element + padding - kernel;
    return behind < 0 ? 0 : behind / stride + 1;
  }
  [[nodiscard]] RONDA_HOST_DEVICE bool reaches(std::int64_t window, std::int64_t element) const {
    return window < windows && window * stride - padding <= element;
  }
};

/// Pooling of (N, height, width, channels): the windows of its rows and of its columns.
struct PoolGeometry {
  PoolDirection vertical, horizontal;
  std::int64_t channels;
  bool maximum;

  struct Window {
    std::int64_t top, bottom, left, right;  ///< of real elements; bottom and right are behind the last
    [[nodiscard]] RONDA_HOST_DEVICE float area() const { return static_cast<float>((bottom - top) * (right - left)); }
  };
  [[nodiscard]] RONDA_HOST_DEVICE Window window(std::int64_t row, std::int64_t column) const {
    return {vertical.begin(row), vertical.end(row), horizontal.begin(column), horizontal.end(column)};
  }
  [[nodiscard]] RONDA_HOST_DEVICE std::int64_t place(std::int64_t n, std::int64_t h, std::int64_t w,
                                                     std::int64_t c) const {
    return ((n * vertical.extent + h) * horizontal.extent + w) * channels + c;
  }
  /// The place of the first of the largest elements, or of the last NaN, as PyTorch.
  template <Number T>
  [[nodiscard]] RONDA_HOST_DEVICE std::int64_t winner(const T* x, const Window& window, std::int64_t n,
                                                      std::int64_t c) const {
    std::int64_t best = place(n, window.top, window.left, c);
    for (std::int64_t h = window.top; h < window.bottom; ++h)
      for (std::int64_t w = window.left; w < window.right; ++w) {
        const std::int64_t here = place(n, h, w, c);
        if (beats(as_float(x[here]), as_float(x[best]))) best = here;
      }
    return best;
  }
};

/// A call for one run of the output. With `relu` that of the rectified x.
template <Number T, int width = 1>
struct Pool {
  PoolGeometry geometry;  ///< its channels in runs
  const Run<T, width>* x;
  Run<T, width>* y;
  bool relu = false;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    const ImagePlace at = place_of(i, geometry.vertical.windows, geometry.horizontal.windows, geometry.channels);
    const auto window = geometry.window(at.row, at.column);
    y[i] = geometry.maximum ? largest(window, at) : mean(window, at);
  }

 private:
  RONDA_HOST_DEVICE Run<T, width> largest(const PoolGeometry::Window& window, const ImagePlace& at) const {
    Run<T, width> best = x[geometry.place(at.n, window.top, window.left, at.run)];
    for (std::int64_t h = window.top; h < window.bottom; ++h)
      for (std::int64_t w = window.left; w < window.right; ++w) {
        const Run<T, width> here = x[geometry.place(at.n, h, w, at.run)];
        for (int k = 0; k < width; ++k)
          if (beats(as_float(number(here, k)), as_float(number(best, k)))) number(best, k) = number(here, k);
      }
    for (int k = 0; k < width; ++k)
      if (relu && as_float(number(best, k)) <= 0) number(best, k) = T{};
    return best;
  }
  RONDA_HOST_DEVICE Run<T, width> mean(const PoolGeometry::Window& window, const ImagePlace& at) const {
    BlockSum sums[width];
    for (std::int64_t h = window.top; h < window.bottom; ++h)
      for (std::int64_t w = window.left; w < window.right; ++w) {
        const Run<T, width> here = x[geometry.place(at.n, h, w, at.run)];
        for (int k = 0; k < width; ++k) {
          const float value = as_float(number(here, k));
          sums[k].add(relu ? rectified(value) : value);
        }
      }
    Run<T, width> means{};
    for (int k = 0; k < width; ++k) number(means, k) = as_number<T>(sums[k].value() / window.area());
    return means;
  }
};

/// The gradient of a pooling whose windows do not overlap, as PoolGradient has it. The image is cut into cells, one for
/// each window, and smaller ones at the end of rows and columns where no window lies; a call for one run of a cell.
template <Number T, int width = 1>
struct PoolCellGradient {
  PoolGeometry geometry;  ///< its channels in runs; no padding, and strides at least as long as the windows
  const Run<T, width>* x;
  const Run<T, width>* dy;
  Run<T, width>* dx;
  bool relu;

  [[nodiscard]] static bool suits(const PoolGeometry& g) {
    return g.vertical.padding == 0 && g.horizontal.padding == 0 && g.vertical.kernel <= g.vertical.stride &&
           g.horizontal.kernel <= g.horizontal.stride;
  }
  [[nodiscard]] static RONDA_HOST_DEVICE std::int64_t cells(const PoolDirection& along) {
    return (along.extent + along.stride - 1) / along.stride;
  }
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    const PoolDirection &v = geometry.vertical, &h = geometry.horizontal;
    const ImagePlace at = place_of(i, cells(v), cells(h), geometry.channels);
    const bool has_window = at.row < v.windows && at.column < h.windows;
    const PoolGeometry::Window window = has_window ? geometry.window(at.row, at.column) : PoolGeometry::Window{};
    Run<T, width> gradient{};
    std::int64_t winners[width] = {};
    if (has_window) {
      gradient = dy[((at.n * v.windows + at.row) * h.windows + at.column) * geometry.channels + at.run];
      if (geometry.maximum) find_winners(window, at, winners);
    }
    const std::int64_t bottom = smaller((at.row + 1) * v.stride, v.extent),
                       right = smaller((at.column + 1) * h.stride, h.extent);
    for (std::int64_t row = at.row * v.stride; row < bottom; ++row)
      for (std::int64_t column = at.column * h.stride; column < right; ++column) {
        const std::int64_t place = geometry.place(at.n, row, column, at.run);
        const bool inside = row < window.bottom && column < window.right;
        dx[place] = inside ? part(place, window, gradient, winners) : Run<T, width>{};
      }
  }

 private:
  static RONDA_HOST_DEVICE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
  RONDA_HOST_DEVICE void find_winners(const PoolGeometry::Window& window, const ImagePlace& at,
                                      std::int64_t (&winners)[width]) const {
    Run<T, width> best = x[geometry.place(at.n, window.top, window.left, at.run)];
    for (std::int64_t& winner : winners) winner = geometry.place(at.n, window.top, window.left, at.run);
    for (std::int64_t h = window.top; h < window.bottom; ++h)
      for (std::int64_t w = window.left; w < window.right; ++w) {
        const std::int64_t place = geometry.place(at.n, h, w, at.run);
        const Run<T, width> here = x[place];
        for (int k = 0; k < width; ++k) {
          if (!beats(as_float(number(here, k)), as_float(number(best, k)))) continue;
          number(best, k) = number(here, k);
          winners[k] = place;
        }
      }
  }
  RONDA_HOST_DEVICE Run<T, width> part(std::int64_t place, const PoolGeometry::Window& window,
                                       const Run<T, width>& gradient, const std::int64_t (&winners)[width]) const {
    const Run<T, width> before = x[place];
    Run<T, width> result{};
    for (int k = 0; k < width; ++k) {
      if (relu && as_float(number(before, k)) <= 0) continue;
      if (!geometry.maximum)
        number(result, k) = as_number<T>(as_float(number(gradient, k)) / window.area());
      else if (winners[k] == place)
        number(result, k) = number(gradient, k);
    }
    return result;
  }
};

/// A call for one element of the input, which asks every window that it lies in: nobody adds to another's element.
/// With `relu` the gradient of what lies before a ReLU; x is that, or the ReLU's output.
template <Number T>
struct PoolGradient {
  PoolGeometry geometry;
  const T* x;
  const T* dy;
  T* dx;
  bool relu;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    const PoolGeometry& g = geometry;
    const std::int64_t height = g.vertical.extent, width = g.horizontal.extent;
    const std::int64_t c = i % g.channels, w = i / g.channels % width;
    const std::int64_t h = i / g.channels / width % height, n = i / g.channels / width / height;
    float sum = 0;
    if (!(relu && as_float(x[i]) <= 0))
      for (std::int64_t row = g.vertical.first_window(h); g.vertical.reaches(row, h); ++row)
        for (std::int64_t column = g.horizontal.first_window(w); g.horizontal.reaches(column, w); ++column)
          sum += part(row, column, n, c, i);
    dx[i] = as_number<T>(sum);
  }

 private:
  [[nodiscard]] RONDA_HOST_DEVICE float part(std::int64_t row, std::int64_t column, std::int64_t n, std::int64_t c,
                                             std::int64_t i) const {
    const auto window = geometry.window(row, column);
    const std::int64_t position = (n * geometry.vertical.windows + row) * geometry.horizontal.windows + column;
    const float gradient = as_float(dy[position * geometry.channels + c]);
    if (geometry.maximum) return geometry.winner(x, window, n, c) == i ? gradient : 0.0F;
    return gradient / window.area();
  }
};

/// Sums of the columns of (rows, columns) over each of `chunks` parts of the rows; SumChunks adds these up. A call for
/// one (chunk, column).
template <Number T>
struct SumRows {
  const T* x;
  float* sums;  ///< (chunks, columns)
  std::int64_t rows, columns, chunks;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t chunk = i / columns, column = i % columns, length = (rows + chunks - 1) / chunks;
    const std::int64_t begin = chunk * length, end = begin + length < rows ? begin + length : rows;
    BlockSum sum;
    for (std::int64_t row = begin; row < end; ++row) sum.add(as_float(x[row * columns + column]));
    sums[i] = sum.value();
  }
};

/// The sums of columns from those of parts of the rows: a team for one column.
template <Number T>
struct SumChunks {
  const float* x;  ///< (chunks, columns)
  T* sums;
  std::int64_t chunks, columns;
  template <class Team>
  RONDA_HOST_DEVICE void operator()(Team team, std::int64_t column) const {
    BlockSum mine;
    for (std::int64_t chunk = team.rank(); chunk < chunks; chunk += team.size()) mine.add(x[chunk * columns + column]);
    const float sum = team.combine(mine.value(), [](float a, float b) { return a + b; });
    if (team.rank() == 0) sums[column] = as_number<T>(sum);
  }
};

/// Into how many parts the rows are cut: enough to fill a GPU, and each of some length.
[[nodiscard]] inline std::int64_t column_chunks(std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t threads = 1 << 16, shortest = 16;
  const std::int64_t wanted = threads / (columns > 0 ? columns : 1), most = rows / shortest;
  const std::int64_t chunks = wanted < most ? wanted : most;
  return chunks > 1 ? chunks : 1;
}

/// What SoftmaxCrossEntropy::run does for one row, by a team of threads: of a warp on a GPU, of one on the host. A
/// label that is none makes loss and gradient NaN, so that the step is not applied; the host's code can throw.
template <Number T>
struct SoftmaxRow {
  const T* x;                  ///< (rows, classes)
  const std::int32_t* labels;  ///< (rows)
  const float* weights;        ///< of the samples, which have `rows_of_sample` rows each
  T* gradient;                 ///< (rows, classes)
  double* sums;                ///< (rows, 3): weighted loss, weight, weighted correctness
  std::int64_t classes;
  float smoothing, loss_scale;
  const float* more_scale;  ///< null: 1
  std::int64_t rows_of_sample = 1;
  std::int32_t ignore_index = -100;

  template <class Team>
  RONDA_HOST_DEVICE void operator()(Team team, std::int64_t n) const {
    const T* row = x + n * classes;
    const std::int64_t label = labels[n];
    const float weight = label == ignore_index ? 0.0F : weights[n / rows_of_sample];
    if (weight == 0) return count_nothing(team, n);
    const Largest largest = find_largest(team, row);
    float mine = 0;
    for (std::int64_t c = team.rank(); c < classes; c += team.size())
      mine += std::exp(as_float(row[c]) - largest.value);
    const float sum = team.combine(mine, [](float a, float b) { return a + b; });
    const bool known = label >= 0 && label < classes;
    const float scale = weight * loss_scale * (more_scale != nullptr ? *more_scale : 1.0F);
    write_gradient(team, row, gradient + n * classes, known ? label : -1, {largest.value, 1 / sum, scale});
    const double loss = known ? row_loss(team, row, label, largest.value, std::log(sum)) : not_a_number();
    if (team.rank() != 0) return;
    sums[3 * n] = weight * loss;
    sums[3 * n + 1] = weight;
    sums[3 * n + 2] = known && largest.place == label && sum == sum ? weight : 0.0F;  // of NaN none is largest
  }

 private:
  struct Largest {
    float value;
    std::int64_t place;  ///< of the first of the largest
  };
  struct Factors {
    float largest, inverse, scale;
  };
  static RONDA_HOST_DEVICE double not_a_number() { return static_cast<double>(std::nanf("")); }

  template <class Team>
  RONDA_HOST_DEVICE void count_nothing(Team team, std::int64_t n) const {
    for (std::int64_t c = team.rank(); c < classes; c += team.size()) gradient[n * classes + c] = as_number<T>(0.0F);
    if (team.rank() != 0) return;
    for (std::int64_t i = 0; i < 3; ++i) sums[3 * n + i] = 0;
  }

  template <class Team>
  RONDA_HOST_DEVICE Largest find_largest(Team team, const T* row) const {
    Largest mine{as_float(row[0]), 0};
    for (std::int64_t c = team.rank(); c < classes; c += team.size())
      if (as_float(row[c]) > mine.value) mine = {as_float(row[c]), c};
    const float value = team.combine(mine.value, [](float a, float b) { return a > b ? a : b; });
    const std::int64_t place = team.combine(mine.value == value ? mine.place : classes,
                                            [](std::int64_t a, std::int64_t b) { return a < b ? a : b; });
    return {value, place};
  }

  /// The exponentials once more: to keep them in `d` would round them to T.
  template <class Team>
  RONDA_HOST_DEVICE void write_gradient(Team team, const T* row, T* d, std::int64_t label, Factors factors) const {
    const float off = smoothing / static_cast<float>(classes);
    for (std::int64_t c = team.rank(); c < classes; c += team.size()) {
      const float probability = std::exp(as_float(row[c]) - factors.largest) * factors.inverse;
      float value = (probability - off) * factors.scale;
      if (c == label) value -= (1 - smoothing) * factors.scale;
      d[c] = as_number<T>(label < 0 ? std::nanf("") : value);
    }
  }

  template <class Team>
  RONDA_HOST_DEVICE double row_loss(Team team, const T* row, std::int64_t label, float max, float log_sum) const {
    double loss = (1.0 - smoothing) * (log_sum - (as_float(row[label]) - max));
    if (!(smoothing > 0)) return loss;
    const float off = smoothing / static_cast<float>(classes);
    double mine = 0;
    for (std::int64_t c = team.rank(); c < classes; c += team.size())
      mine += off * (log_sum - (as_float(row[c]) - max));
    return loss + team.combine(mine, [](double a, double b) { return a + b; });
  }
};

/// The losses, weights and correctness of a part of the rows each, by a team for each part.
struct SumLossesOfParts {
  const double* sums;  ///< of a SoftmaxRow
  double* of_parts;    ///< (parts, 3)
  std::int64_t rows, parts;

  template <class Team>
  RONDA_HOST_DEVICE void operator()(Team team, std::int64_t part) const {
    const std::int64_t begin = part * rows / parts, end = (part + 1) * rows / parts;
    for (std::int64_t k = 0; k < 3; ++k) {
      double sum = 0;
      for (std::int64_t n = begin + team.rank(); n < end; n += team.size()) sum += sums[3 * n + k];
      sum = team.combine(sum, [](double a, double b) { return a + b; });
      if (team.rank() == 0) of_parts[3 * part + k] = sum;
    }
  }
};
/// Into how many parts a batch's rows are cut for SumLossesOfParts; 1: SumLosses takes them at once.
[[nodiscard]] inline std::int64_t loss_parts(std::int64_t rows) {
  constexpr std::int64_t shortest = 128, most = 128;
  if (rows <= 2 * shortest) return 1;
  return rows < shortest * most ? rows / shortest : most;
}

/// Adds the losses, weights and correctness of rows, or of parts of them, to the control block, by one team.
struct SumLosses {
  const double* sums;  ///< of a SoftmaxRow
  std::int64_t rows;
  StepControl* control;

  template <class Team>
  RONDA_HOST_DEVICE void operator()(Team team, std::int64_t) const {
    double loss = 0, weight = 0, correct = 0;
    for (std::int64_t n = team.rank(); n < rows; n += team.size()) {
      loss += sums[3 * n];
      weight += sums[3 * n + 1];
      correct += sums[3 * n + 2];
    }
    const auto sum = [](double a, double b) { return a + b; };
    loss = team.combine(loss, sum);
    correct = team.combine(correct, sum);
    weight = team.combine(weight, sum);
    if (team.rank() != 0) return;
    control->loss += loss;
    control->weight += weight;
    control->metric += correct;
  }
};

/// A team of one, for the host.
struct OneThread {
  [[nodiscard]] std::int64_t rank() const { return 0; }
  [[nodiscard]] std::int64_t size() const { return 1; }
  template <class T, class Combine>
  [[nodiscard]] T combine(T value, Combine) const {
    return value;
  }
};

}  // namespace ronda::cudnn
