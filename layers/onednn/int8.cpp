#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/layers/arithmetic.hpp>
#include <ronda/layers/onednn/int8_product.hpp>
#include <ronda/layers/onednn/operations.hpp>
#include <ronda/layers/onednn/pooling.hpp>
#include <ronda/layers/onednn/sums.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ronda::onednn {
namespace {

std::int64_t rounded_up(std::int64_t count, std::int64_t to) { return parts(count, to) * to; }

void require_plain(const TensorDesc& input, int rank) {
  if (input.dtype != DType::float32 || input.shape.rank() != rank || !same_bytes(input, {input.shape, input.dtype, {}}))
    throw LogicError("an operation of int8 cannot read " + input.text());
}

/// What the two kinds of operations have in common: parameters, and memory of their own for each worker.
class Int8Operation : public Operation {
 public:
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void backward(Inputs, const Tensor&, const Pass&) override { throw LogicError("operations of int8 only compute"); }

 protected:
  Int8Operation(const Runtime& runtime, std::int64_t outputs, bool has_bias, Activation activation)
      : threads_(runtime.threads), outputs_(outputs), has_bias_(has_bias), relu_(activation == Activation::relu) {
    const auto of_outputs = static_cast<std::size_t>(rounded_up(outputs, Int8Product::lanes));
    scale_ = scratch_.reserve(of_outputs * sizeof(float));
    bias_ = scratch_.reserve(of_outputs * sizeof(float));
    shift_ = scratch_.reserve(of_outputs * sizeof(std::int32_t));
    plan_.picks = "int8, " + std::string(Int8Product::name_of(Int8Product::best()));
  }

  /// To be called once, when all is known.
  void plan(const TensorDesc& weight, const Shape& output, std::vector<std::int32_t> taps,
            std::size_t bytes_of_worker) {
    const TensorDesc channels{{outputs_}, DType::float32, {}}, one{{1}, DType::float32, {}};
    plan_.parameters = {weight, channels, one, one};
    if (has_bias_) plan_.parameters.push_back(channels);
    plan_.output = {output, DType::float32, {}};
    taps_ = std::move(taps);
    bytes_of_worker_ = Buffer::aligned(bytes_of_worker);
    of_workers_ = scratch_.reserve(static_cast<std::size_t>(threads_) * bytes_of_worker_);
    plan_.scratch_bytes = scratch_.bytes();
  }

  /// How inputs become bytes.
  struct Scale {
    float scale, inverse, zero;
    [[nodiscard]] std::uint8_t zero_byte() const { return int8::byte_of(0, inverse, zero); }
  };
  [[nodiscard]] Scale input_scale() const {
    const float scale = *numbers(int8::input_scale);
    return {scale, 1 / scale, *numbers(int8::input_zero)};
  }

  /// The product for parameters as they are now.
  [[nodiscard]] Int8Product product(const Scale& input) const {
    auto* scale = at<float>(scale_);
    auto* bias = at<float>(bias_);
    for (std::int64_t o = 0; o < outputs_; ++o) {
      scale[o] = input.scale * numbers(int8::weight_scale)[o];
      bias[o] = has_bias_ ? numbers(int8::bias)[o] : 0;
    }
    const Int8Product result{.taps = taps_,
                             .weight = memory_.parameters[int8::weight]->value.pointer<std::int8_t>(),
                             .outputs = outputs_,
                             .scale = scale,
                             .bias = bias,
                             .shift = at<std::int32_t>(shift_),
                             .relu = relu_};
    result.sum_weights(input.zero_byte(), at<std::int32_t>(shift_));
    return result;
  }

  /// Calls `body(range of 0 … count − 1, the worker's memory)`, in parts, one a worker.
  template <class Body>
  void each_worker(std::int64_t count, Body&& body) const {
    const auto workers = static_cast<std::size_t>(threads_);
    parallel_for(threads_, workers, [&](Range range) {
      for (std::size_t worker = range.begin; worker < range.end; ++worker)
        body(part_of(static_cast<std::size_t>(count), worker, workers),
             memory_.scratch + of_workers_ + worker * bytes_of_worker_);
    });
  }

  static void spoil(float* y, std::int64_t count) { std::fill_n(y, count, std::numeric_limits<float>::quiet_NaN()); }

  int threads_;
  OperationMemory memory_;

 private:
  [[nodiscard]] const float* numbers(std::size_t parameter) const {
    return memory_.parameters[parameter]->value.pointer<float>();
  }
  template <class T>
  [[nodiscard]] T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(memory_.scratch + offset);
  }

  std::int64_t outputs_;
  bool has_bias_, relu_;
  std::vector<std::int32_t> taps_;
  ArenaPlan scratch_;
  std::size_t scale_, bias_, shift_, of_workers_ = 0, bytes_of_worker_ = 0;
};

class Int8Dense final : public Int8Operation {
 public:
  Int8Dense(const Runtime& runtime, const DenseProblem& spec)
      : Int8Operation(runtime, spec.outputs, spec.bias, spec.activation),
        rows_(spec.input.shape[0]),
        inputs_(spec.input.shape[1]),
        outputs_(spec.outputs),
        row_bytes_(rounded_up(inputs_, Int8Product::width)) {
    std::vector<std::int32_t> taps;
    for (std::int64_t i = 0; i < inputs_; i += Int8Product::width) taps.push_back(static_cast<std::int32_t>(i));
    plan({{outputs_, inputs_}, DType::int8, Layout::parse("ab16a4b")}, {rows_, outputs_}, std::move(taps),
         static_cast<std::size_t>(rows_at_once * row_bytes_));
  }

  void forward(Inputs inputs, const Pass&) override {
    const Scale scale = input_scale();
    const Int8Product products = product(scale);
    const float* x = inputs.front().pointer<float>();
    float* y = memory_.output.pointer<float>();
    each_worker(rows_, [&](Range range, std::byte* memory) {
      auto* bytes = reinterpret_cast<std::uint8_t*>(memory);
      for (auto row = static_cast<std::int64_t>(range.begin); row < static_cast<std::int64_t>(range.end);
           row += rows_at_once) {
        const std::int64_t rows = std::min(rows_at_once, static_cast<std::int64_t>(range.end) - row);
        bool spoiled[rows_at_once];
        for (std::int64_t r = 0; r < rows; ++r)
          spoiled[r] = !quantize(x + (row + r) * inputs_, inputs_, scale.inverse, scale.zero, bytes + r * row_bytes_);
        products.run(bytes, row_bytes_, rows, y + row * outputs_);
        for (std::int64_t r = 0; r < rows; ++r)
          if (spoiled[r]) spoil(y + (row + r) * outputs_, outputs_);
      }
    });
  }

 private:
  static constexpr std::int64_t rows_at_once = 24;

  std::int64_t rows_, inputs_, outputs_, row_bytes_;
};

/// The image of a sample, as bytes with its padding.
struct PaddedImage {
  std::int64_t height, width;             ///< of the sample
  std::int64_t channels, lanes_of_pixel;  ///< bytes of a pixel: 1, or a multiple of four
  std::int64_t above, left, padded_height, padded_width;

  PaddedImage(const ConvolutionProblem& spec)
      : height(spec.input.shape[1]),
        width(spec.input.shape[2]),
        channels(spec.input.shape[3]),
        lanes_of_pixel(channels == 1 && spec.dilation.width == 1 ? 1 : rounded_up(channels, Int8Product::width)),
        above(spec.padding.height),
        left(spec.padding.width),
        padded_height(height + 2 * above + spec.trailing.height),
        padded_width(width + 2 * left + spec.trailing.width) {}

  [[nodiscard]] std::int64_t row() const { return padded_width * lanes_of_pixel; }
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(padded_height * row() + Int8Product::width);
  }

  /// Returns whether all were finite. What lies around the image stays.
  bool fill(const float* x, float inverse, float zero, std::uint8_t* bytes) const {
    bool finite = true;
    for (std::int64_t h = 0; h < height; ++h) {
      std::uint8_t* to = bytes + (above + h) * row() + left * lanes_of_pixel;
      const float* from = x + h * width * channels;
      if (lanes_of_pixel == channels) {
        finite = quantize(from, width * channels, inverse, zero, to) && finite;
        continue;
      }
      for (std::int64_t w = 0; w < width; ++w)
        for (std::int64_t c = 0; c < channels; ++c) {
          to[w * lanes_of_pixel + c] = int8::byte_of(from[w * channels + c], inverse, zero);
          finite = int8::not_finite(from[w * channels + c]) == 0 && finite;
        }
    }
    return finite;
  }
};

class Int8Convolution final : public Int8Operation {
 public:
  Int8Convolution(const Runtime& runtime, const ConvolutionProblem& spec)
      : Int8Operation(runtime, spec.outputs, spec.bias, spec.activation),
        spec_(spec),
        image_(spec),
        convolved_(convolution_output(spec)),
        result_(spec.pool ? pool_output(convolved_, *spec.pool) : convolved_) {
    ArenaPlan worker;
    static_cast<void>(worker.reserve(image_.bytes()));
    if (spec.pool) plan_pooling(*spec.pool, worker);
    const bool one_channel = image_.lanes_of_pixel == 1;
    plan({weight_shape(spec, spec.input.shape), DType::int8, Layout::parse(one_channel ? "abcd16a4d" : "acdb16a4b")},
         result_, taps(), worker.bytes());
  }

  void forward(Inputs inputs, const Pass&) override {
    const Scale scale = input_scale();
    const Int8Product products = product(scale);
    const float* x = inputs.front().pointer<float>();
    const std::int64_t sample_size = spec_.input.shape.without_batch().count();
    const std::int64_t result_size = result_.without_batch().count();
    each_worker(result_[0], [&](Range samples, std::byte* memory) {
      auto* bytes = reinterpret_cast<std::uint8_t*>(memory);
      std::fill_n(bytes, image_.bytes(), scale.zero_byte());
      for (auto n = static_cast<std::int64_t>(samples.begin); n < static_cast<std::int64_t>(samples.end); ++n) {
        float* y = memory_.output.pointer<float>() + n * result_size;
        if (!image_.fill(x + n * sample_size, scale.inverse, scale.zero, bytes))
          spoil(y, result_size);
        else if (pooling_)
          convolve_and_pool(products, bytes, memory, y);
        else
          convolve(products, bytes, 0, convolved_[1], y);
      }
    });
  }

 private:
  /// Rows of the convolution that wait for their pooling: one row of windows where those do not overlap, so that they
  /// stay in the first-level cache; otherwise all.
  void plan_pooling(const PoolSpec& pool, ArenaPlan& worker) {
    const bool apart = pool.padding.height == 0 && pool.stride.height >= pool.kernel.height;
    band_step_ = pool.stride.height;
    band_rows_ = apart ? pool.kernel.height : convolved_[1];
    bands_ = apart ? result_[1] : 1;
    const std::int64_t pooled_rows = apart ? 1 : result_[1];
    band_size_ = pooled_rows * result_[2] * result_[3];
    const Images band{.samples = 1, .groups = 1, .height = band_rows_, .width = convolved_[2], .lanes = convolved_[3]};
    pooling_.emplace(pool, band, Shape{1, pooled_rows, result_[2], result_[3]});
    rows_offset_ = worker.reserve(static_cast<std::size_t>(band.image_size()) * sizeof(float));
    winners_offset_ = worker.reserve(pooling_->winner_bytes());
  }

  /// Of a window's elements, four bytes of one or more pixels each, in the order of the weight's layout.
  [[nodiscard]] std::vector<std::int32_t> taps() const {
    std::vector<std::int32_t> all;
    const std::int64_t pixel = image_.lanes_of_pixel;
    for (std::int64_t kh = 0; kh < spec_.kernel.height; ++kh) {
      const std::int64_t row = kh * spec_.dilation.height * image_.row();
      if (pixel == 1)
        for (std::int64_t kw = 0; kw < spec_.kernel.width; kw += Int8Product::width)
          all.push_back(static_cast<std::int32_t>(row + kw));
      else
        for (std::int64_t kw = 0; kw < spec_.kernel.width; ++kw)
          for (std::int64_t c = 0; c < pixel; c += Int8Product::width)
            all.push_back(static_cast<std::int32_t>(row + kw * spec_.dilation.width * pixel + c));
    }
    return all;
  }

  void convolve(const Int8Product& products, const std::uint8_t* bytes, std::int64_t first, std::int64_t rows,
                float* y) const {
    const std::int64_t step = spec_.stride.width * image_.lanes_of_pixel;
    for (std::int64_t row = 0; row < rows; ++row)
      products.run(bytes + (first + row) * spec_.stride.height * image_.row(), step, convolved_[2],
                   y + row * convolved_[2] * convolved_[3]);
  }

  void convolve_and_pool(const Int8Product& products, const std::uint8_t* bytes, std::byte* memory, float* y) const {
    auto* rows = reinterpret_cast<float*>(memory + rows_offset_);
    for (std::int64_t band = 0; band < bands_; ++band) {
      convolve(products, bytes, band * band_step_, band_rows_, rows);
      pooling_->forward(rows, y + band * band_size_, memory + winners_offset_, 1);
    }
  }

  ConvolutionProblem spec_;
  PaddedImage image_;
  Shape convolved_, result_;
  std::optional<Pooling> pooling_;
  std::int64_t bands_ = 0, band_rows_ = 0, band_step_ = 0, band_size_ = 0;  ///< of rows that are pooled together
  std::size_t rows_offset_ = 0, winners_offset_ = 0;
};

}  // namespace

std::unique_ptr<Operation> make_int8(const Runtime& runtime, const DenseProblem& spec) {
  require_plain(spec.input, 2);
  return std::make_unique<Int8Dense>(runtime, spec);
}

std::unique_ptr<Operation> make_int8(const Runtime& runtime, const ConvolutionProblem& spec) {
  require_plain(spec.input, 4);
  if (spec.groups != 1) throw InputError("a convolution with groups does not compute in int8");
  return std::make_unique<Int8Convolution>(runtime, spec);
}

}  // namespace ronda::onednn
