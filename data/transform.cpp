#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/detail/image.hpp>
#include <ronda/data/transform.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace ronda {

Tensor SampleRow::field(std::string_view name) const {
  const Tensor& all = batch_.field(name);
  const TensorDesc desc{all.shape().without_batch(), all.dtype(), {}};
  return {desc, all.data() + row_ * desc.bytes(), all.device()};
}

TransformedDataset::TransformedDataset(const Dataset& data, std::vector<Transform> transforms) : data_(data) {
  for (Transform& transform : transforms) {
    if (!transform.apply) throw InputError("the transform '" + transform.name + "' has no function");
    const auto earlier =
        std::ranges::count(steps_, transform.name, [](const Step& step) { return step.transform.name; });
    std::string stream = transform.name + " " + std::to_string(earlier);
    steps_.push_back({std::move(transform), std::move(stream)});
  }
  std::int64_t most = 0;
  for (const Field& field : data.fields()) most = std::max(most, field.shape.count());
  scratch_.resize(static_cast<std::size_t>(most));
}

void TransformedDataset::read(const SampleRequest& request, Batch& batch) const {
  data_.read(request, batch);
  const bool evaluation = request.epoch == 0;
  const std::lock_guard lock(reading_);
  for (std::size_t row = 0; row < request.samples.size(); ++row)
    for (const Step& step : steps_) try {
        if (evaluation && !step.transform.in_evaluation) continue;
        step.transform.apply(SampleRow(batch, row, scratch_), request.key(row, step.stream));
      } catch (const std::exception& error) {
        throw InputError("the transform " + step.transform.name + ", sample " + std::to_string(request.samples[row]) +
                         " in epoch " + std::to_string(request.epoch) + ": " + message_of(error));
      }
}

std::uint64_t TransformedDataset::fingerprint() const {
  Hash hash;
  hash.add(data_.fingerprint());
  for (const Step& step : steps_) hash.add(step.stream);
  return hash.value();
}

namespace {

/// Of pixels whose size the compiler knows, twice as fast.
template <std::size_t channels>
void flip_row(float* left, float* right) {
  std::array<float, channels> pixel{};
  for (; left < right; left += channels, right -= channels) {
    std::memcpy(pixel.data(), left, sizeof(pixel));
    std::memcpy(left, right, sizeof(pixel));
    std::memcpy(right, pixel.data(), sizeof(pixel));
  }
}

void flip(const Image& image) {
  if (image.channels == 3) {
    for (std::int64_t y = 0; y < image.height; ++y)
      flip_row<3>(image.pixel(y, 0).data(), image.pixel(y, image.width - 1).data());
    return;
  }
  for (std::int64_t y = 0; y < image.height; ++y) {
    float* const row = image.row(y).data();
    for (std::int64_t left = 0, right = image.width - 1; left < right; ++left, --right)
      std::swap_ranges(row + left * image.channels, row + (left + 1) * image.channels, row + right * image.channels);
  }
}

/// Moves a row's pixels by dx to the right; what comes in is zero.
void shift_row(std::span<float> row, std::int64_t floats) {
  const auto by = static_cast<std::size_t>(std::abs(floats));
  if (by >= row.size()) return static_cast<void>(std::ranges::fill(row, 0.0F));
  const std::size_t kept = (row.size() - by) * sizeof(float);
  if (floats > 0) {
    std::memmove(row.data() + by, row.data(), kept);
    std::ranges::fill(row.first(by), 0.0F);
  } else if (floats < 0) {
    std::memmove(row.data(), row.data() + by, kept);
    std::ranges::fill(row.last(by), 0.0F);
  }
}

void shift(const Image& image, std::int64_t dy, std::int64_t dx) {
  const std::int64_t first = dy > 0 ? image.height - 1 : 0,
                     step = dy > 0 ? -1 : 1;  // no row is read after it is written
  for (std::int64_t i = 0; i < image.height; ++i) {
    const std::int64_t y = first + i * step, from = y - dy;
    if (from < 0 || from >= image.height) {
      std::ranges::fill(image.row(y), 0.0F);
      continue;
    }
    if (from != y) std::ranges::copy(image.row(from), image.row(y).begin());
    shift_row(image.row(y), dx * image.channels);
  }
}

void cut_out(const Image& image, std::int64_t top, std::int64_t left, std::int64_t side) {
  const auto within = [](std::int64_t begin, std::int64_t length, std::int64_t end) {
    return std::pair(std::max<std::int64_t>(begin, 0), std::min(begin + length, end));
  };
  const auto [first, last] = within(left, side, image.width);
  const auto [upper, lower] = within(top, side, image.height);
  for (std::int64_t y = upper; y < lower; ++y)
    for (std::int64_t x = first; x < last; ++x) std::ranges::fill(image.pixel(y, x), 0.0F);
}

/// @param means, deviations  of several pixels one after the other, so that they fill whole vectors: `period` numbers
RONDA_MULTIVERSION void normalize_values(float* __restrict values, std::size_t count, const float* __restrict means,
                                         const float* __restrict deviations, std::size_t period) {
  for (; count >= period; values += period, count -= period)
    for (std::size_t i = 0; i < period; ++i) values[i] = (values[i] - means[i]) / deviations[i];
  for (std::size_t i = 0; i < count; ++i) values[i] = (values[i] - means[i]) / deviations[i];
}

/// One after the other, sixteen times.
std::vector<float> repeated(const std::vector<float>& numbers) {
  std::vector<float> all;
  for (int times = 0; times < 16; ++times) all.insert(all.end(), numbers.begin(), numbers.end());
  return all;
}

/// `name(first; second)`, with digits enough to tell floats apart.
std::string name_of(const char* name, std::span<const float> first, std::span<const float> second) {
  TextWriter text;
  text.precision(9);
  text << name << "(";
  for (const float each : first) text << each << " ";
  text << ";";
  for (const float each : second) text << " " << each;
  text << ")";
  return text.str();
}

}  // namespace

Transform random_flip(double probability) {
  if (!(probability >= 0 && probability <= 1))
    throw InputError("random_flip: a probability is from 0 to 1, found " + shortest(probability));
  TextWriter name;
  name << "random_flip(" << probability << ")";
  return {name.str(), [probability](const SampleRow& sample, const RngKey& key) {
            const Image image(sample);
            if (static_cast<double>(key.uniform(0)) < probability) flip(image);
          }};
}

Transform random_shift(std::int64_t pixels) {
  constexpr std::int64_t most = 1 << 20;
  if (pixels < 0 || pixels > most)
    throw InputError("random_shift: pixels are from 0 to " + std::to_string(most) + ", found " +
                     std::to_string(pixels));
  return {"random_shift(" + std::to_string(pixels) + ")", [pixels](const SampleRow& sample, const RngKey& key) {
            const auto draw = [&](std::uint64_t axis) {
              return static_cast<std::int64_t>(key.below(static_cast<std::uint64_t>(2 * pixels + 1), axis)) - pixels;
            };
            shift(Image(sample), draw(0), draw(1));
          }};
}

Transform cutout(std::int64_t side) {
  constexpr std::int64_t most = 1 << 20;
  if (side < 1 || side > most)
    throw InputError("cutout: a side is from 1 to " + std::to_string(most) + " pixels, found " + std::to_string(side));
  return {"cutout(" + std::to_string(side) + ")", [side](const SampleRow& sample, const RngKey& key) {
            const Image image(sample);
            const auto draw = [&](std::int64_t extent, std::uint64_t axis) {
              return static_cast<std::int64_t>(key.below(static_cast<std::uint64_t>(extent), axis)) - side / 2;
            };
            cut_out(image, draw(image.height, 0), draw(image.width, 1), side);
          }};
}

Transform normalize(std::vector<float> means, std::vector<float> deviations) {
  const auto sound = [](float each) { return std::isfinite(each) && each > 0; };
  if (means.size() != deviations.size() || !std::ranges::all_of(deviations, sound) ||
      !std::ranges::all_of(means, [](float each) { return std::isfinite(each); }))
    throw InputError(name_of("normalize", means, deviations) +
                     ": expected as many means as deviations, all finite, and deviations above 0");
  std::string name = name_of("normalize", means, deviations);
  const auto apply = [channels = means.size(), means = repeated(means), deviations = repeated(deviations)](
                         const SampleRow& sample, const RngKey&) {
    const Image image(sample);
    if (static_cast<std::size_t>(image.channels) != channels)
      throw InputError("expected an image of " + std::to_string(channels) + " channels, found " +
                       image.tensor.shape().text());
    const std::span<float> pixels = image.pixels();
    normalize_values(pixels.data(), pixels.size(), means.data(), deviations.data(), means.size());
  };
  return {std::move(name), apply, true};
}

}  // namespace ronda
