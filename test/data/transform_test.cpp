// Samples that are changed at random: the same on any number of ranks, in any batch, after any restart.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/loader.hpp>
#include <ronda/data/memory_dataset.hpp>
#include <ronda/data/transform.hpp>

#include "support/catch.hpp"
#include "support/decimal_comma.hpp"
#include "support/memory.hpp"
#include "support/message.hpp"

using namespace ronda;
using test::message_of;
using test::require_mentions;

namespace {

constexpr std::size_t size = 37;
const Shape shape{5, 4, 3};
using Pixels = std::vector<float>;

/// No two pixels of all samples are equal, and none is 0.
MemoryDataset images() {
  std::vector<float> inputs(size * static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<float>(i + 1);
  std::vector<std::int32_t> labels(size);
  for (std::size_t i = 0; i < size; ++i) labels[i] = static_cast<std::int32_t>(i);
  return {std::move(inputs), shape, std::move(labels)};
}

std::vector<Transform> both() { return {random_flip(), random_shift(2)}; }
std::vector<Transform> all_of_them() {
  return {random_flip(),       random_shift(2), random_crop(2, Border::reflect), random_resized_crop(),
          random_rotation(30), cutout(2),       normalize({1, 2, 3}, {4, 5, 6})};
}

Pixels pixels_of(const Batch& batch, std::size_t row) {
  const Tensor image = SampleRow(batch, row).field("input");
  const auto values = image.as<const float>();
  return {values.begin(), values.end()};
}

Pixels read_one(const Dataset& data, std::uint64_t sample, std::uint64_t epoch, std::uint64_t seed = 7) {
  Batch batch(data.fields(), 1);
  const std::vector<std::uint64_t> samples{sample};
  data.read({samples, epoch, seed}, batch);
  return pixels_of(batch, 0);
}

}  // namespace

TEST_CASE("a sample is changed alike on any number of ranks, in any batch, read ahead or not, and after a restart") {
  const MemoryDataset plain = images();
  const TransformedDataset data(plain, all_of_them());
  std::map<std::uint64_t, std::vector<Pixels>> expected;  // by epoch and sample
  for (const std::uint64_t epoch : {1, 2, 3})
    for (std::uint64_t sample = 0; sample < size; ++sample) expected[epoch].push_back(read_one(data, sample, epoch));
  CHECK(expected[1] != expected[2]);
  for (const std::size_t shards : {1, 2, 3, 4})
    for (const std::size_t accumulate : {1, 2})
      for (const bool prefetch : {false, true}) {
        std::size_t seen = 0;
        for (std::size_t shard = 0; shard < shards; ++shard) {
          const BatchPlan plan(size, 10, {shard, shards}, accumulate);
          BatchLoader loader(data, SampleOrder(size, 7, true), plan, prefetch);
          loader.seek(2, 1);  // as a training that goes on
          for (std::size_t step = 1; step < 2 * plan.steps_per_epoch(); ++step)
            for (std::size_t micro = 0; micro < accumulate; ++micro) {
              const Batch& batch = loader.next();
              const std::uint64_t epoch = step < plan.steps_per_epoch() ? 2 : 3;
              const auto labels = batch.target().as<const std::int32_t>();
              for (std::size_t row = 0; row < batch.capacity(); ++row)  // padding repeats a sample
                REQUIRE(pixels_of(batch, row) == expected[epoch][static_cast<std::size_t>(labels[row])]);
              seen += batch.real();
            }
        }
        CHECK(seen == 2 * size - 10);
      }
}

TEST_CASE(
    "an evaluation, and a loader that is told so, read samples as they are; another seed changes them otherwise") {
  const MemoryDataset plain = images();
  const TransformedDataset data(plain, both());
  bool differs = false;
  for (std::uint64_t sample = 0; sample < size; ++sample) {
    CHECK(read_one(data, sample, 0) == read_one(plain, sample, 0));
    CHECK(read_one(plain, sample, 5) == read_one(plain, sample, 0));
    differs = differs || read_one(data, sample, 1, 7) != read_one(data, sample, 1, 8);
  }
  CHECK(differs);
  BatchLoader loader(data, SampleOrder(size, 0, false), BatchPlan(size, 10), LoaderOptions{.varies = false});
  const Batch& batch = loader.next();
  for (std::size_t row = 0; row < batch.real(); ++row) CHECK(pixels_of(batch, row) == read_one(plain, row, 0));
}

TEST_CASE("a program with a decimal comma changes samples as one without, and its data has the same fingerprint") {
  const MemoryDataset plain = images();
  const auto transforms = [] {
    return std::vector<Transform>{random_flip(0.25), random_rotation(12.5), random_crop(1), random_resized_crop(0.5),
                                  normalize({0.5, 1000, 2}, {1, 2, 3})};
  };
  const TransformedDataset expected(plain, transforms());
  const test::DecimalComma comma;
  const TransformedDataset data(plain, transforms());
  for (std::uint64_t sample = 0; sample < size; ++sample)
    REQUIRE(read_one(data, sample, 1) == read_one(expected, sample, 1));
  CHECK(data.fingerprint() == expected.fingerprint());
}

TEST_CASE("a flip is a mirror image, and half of the samples are flipped") {
  const MemoryDataset plain = images();
  const TransformedDataset always(plain, {random_flip(1)}), never(plain, {random_flip(0)}),
      half(plain, {random_flip()});
  int flipped = 0;
  for (std::uint64_t sample = 0; sample < size; ++sample) {
    const Pixels before = read_one(plain, sample, 1), after = read_one(always, sample, 1);
    CHECK(read_one(never, sample, 1) == before);
    for (std::size_t y = 0; y < 5; ++y)
      for (std::size_t x = 0; x < 4; ++x)
        for (std::size_t c = 0; c < 3; ++c) REQUIRE(after[(y * 4 + x) * 3 + c] == before[(y * 4 + 3 - x) * 3 + c]);
    for (const std::uint64_t epoch : {1, 2, 3, 4}) flipped += read_one(half, sample, epoch) == after ? 1 : 0;
  }
  CHECK(flipped > 45);  // of 148: 74, and 4.8 standard deviations of 6.1 less
  CHECK(flipped < 103);
}

TEST_CASE("a shift moves all pixels alike, and what comes in is zero; every shift happens") {
  const MemoryDataset plain = images();
  for (const std::int64_t most : {0, 1, 2, 9}) {
    const TransformedDataset data(plain, {random_shift(most)});
    std::map<std::pair<int, int>, int> found;
    for (std::uint64_t sample = 0; sample < size; ++sample)
      for (const std::uint64_t epoch : {1, 2, 3, 4, 5, 6}) {
        const Pixels before = read_one(plain, sample, 0), after = read_one(data, sample, epoch);
        const auto shifted = [&](int dy, int dx) {
          Pixels result(before.size());
          for (int y = 0; y < 5; ++y)
            for (int x = 0; x < 4; ++x)
              for (int c = 0; c < 3; ++c) {
                const int from_y = y - dy, from_x = x - dx;
                if (from_y >= 0 && from_y < 5 && from_x >= 0 && from_x < 4)
                  result[static_cast<std::size_t>((y * 4 + x) * 3 + c)] =
                      before[static_cast<std::size_t>((from_y * 4 + from_x) * 3 + c)];
              }
          return result;
        };
        int matches = 0;
        const int limit = static_cast<int>(most);
        for (int dy = -limit; dy <= limit; ++dy)
          for (int dx = -limit; dx <= limit; ++dx)
            if (after == shifted(dy, dx)) {
              ++matches;
              ++found[{dy, dx}];
            }
        REQUIRE(matches > 0);
      }
    if (most <= 2) CHECK(found.size() == static_cast<std::size_t>((2 * most + 1) * (2 * most + 1)));
  }
}

TEST_CASE("one more transform changes nothing of the others' random numbers; one given twice draws anew") {
  const MemoryDataset plain = images();
  const TransformedDataset flipped(plain, {random_flip()}), after(plain, {random_shift(0), random_flip()}),
      twice(plain, {random_flip(), random_flip()});
  bool differs = false;
  for (std::uint64_t sample = 0; sample < size; ++sample) {
    CHECK(read_one(flipped, sample, 3) == read_one(after, sample, 3));
    differs = differs || read_one(twice, sample, 3) != read_one(plain, sample, 3);
  }
  CHECK(differs);  // otherwise both would always flip together
  CHECK(flipped.fingerprint() != after.fingerprint());
  CHECK(flipped.fingerprint() != plain.fingerprint());
  CHECK(flipped.stored().empty());
}

TEST_CASE("what a transform cannot change is one message that names it; parameters are looked at when it is made") {
  const MemoryDataset plain = images();
  const TransformedDataset throwing(
      plain, {random_flip(), {"mine", [](const SampleRow&, const RngKey&) { throw std::runtime_error("no"); }}});
  require_mentions(message_of<InputError>([&] { read_one(throwing, 3, 4); }), {"mine", "sample 3", "epoch 4", "no"});
  const MemoryDataset vectors(std::vector<float>(6), Shape{3}, std::vector<std::int32_t>{0, 1});
  const TransformedDataset flat(vectors, {random_flip()});
  require_mentions(message_of<InputError>([&] {
                     Batch batch(flat.fields(), 1);
                     const std::vector<std::uint64_t> samples{1};
                     flat.read({samples, 1, 1}, batch);
                   }),
                   {"random_flip(0.5)", "sample 1", "(height, width, channels)", "(3)"});
  REQUIRE_THROWS_AS(random_flip(1.5), InputError);
  REQUIRE_THROWS_AS(random_flip(std::nan("")), InputError);
  REQUIRE_THROWS_AS(random_shift(-1), InputError);
  REQUIRE_THROWS_AS(random_shift(std::int64_t{1} << 40), InputError);
  REQUIRE_THROWS_AS(random_crop(-1), InputError);
  REQUIRE_THROWS_AS(random_resized_crop(0), InputError);
  REQUIRE_THROWS_AS(random_resized_crop(1.5), InputError);
  REQUIRE_THROWS_AS(random_resized_crop(0.5, std::nan("")), InputError);
  REQUIRE_THROWS_AS(random_rotation(-1), InputError);
  REQUIRE_THROWS_AS(random_rotation(std::nan("")), InputError);
  REQUIRE_THROWS_AS(cutout(0), InputError);
  REQUIRE_THROWS_AS(normalize({1}, {}), InputError);
  REQUIRE_THROWS_AS(normalize({1}, {0}), InputError);
  REQUIRE_THROWS_AS(normalize({std::nanf("")}, {1}), InputError);
  REQUIRE_THROWS_AS(TransformedDataset(plain, {{"nothing", nullptr}}), InputError);
  const TransformedDataset grey(plain, {normalize({0}, {1})}), far(plain, {random_crop(4, Border::reflect)});
  require_mentions(message_of<InputError>([&] { read_one(grey, 3, 4); }),
                   {"normalize(0 ; 1)", "1 channels", "(5, 4, 3)"});
  require_mentions(message_of<InputError>([&] { read_one(far, 3, 4); }), {"random_crop(4, reflect)", "less than 4"});
  Batch none(plain.fields(), 1);
  TransformedDataset(plain, both()).read({{}, 1, 1}, none);  // no sample: nothing to do
}

TEST_CASE(
    "a crop of a padded image is the image moved, and what comes in is what the border says; every crop happens") {
  const MemoryDataset plain = images();
  for (const Border border : {Border::zero, Border::edge, Border::reflect})
    for (const int padding : {0, 1, 3}) {
      const TransformedDataset data(plain, {random_crop(padding, border)});
      const auto cropped = [&](const Pixels& before, int top, int left) {
        const auto place = [&](int at, int extent) {  // -1: nowhere
          if (at >= 0 && at < extent) return at;
          if (border == Border::zero) return -1;
          if (border == Border::edge) return at < 0 ? 0 : extent - 1;
          return at < 0 ? -at : 2 * extent - 2 - at;
        };
        Pixels result;
        for (int y = 0; y < 5; ++y)
          for (int x = 0; x < 4; ++x)
            for (int c = 0; c < 3; ++c) {
              const int from_y = place(y + top, 5), from_x = place(x + left, 4);
              result.push_back(
                  from_y < 0 || from_x < 0 ? 0 : before[static_cast<std::size_t>((from_y * 4 + from_x) * 3 + c)]);
            }
        return result;
      };
      std::map<std::pair<int, int>, int> found;
      for (std::uint64_t sample = 0; sample < size; ++sample)
        for (std::uint64_t epoch = 1; epoch <= 12; ++epoch) {
          const Pixels before = read_one(plain, sample, 0), after = read_one(data, sample, epoch);
          int matches = 0;
          for (int top = -padding; top <= padding; ++top)
            for (int left = -padding; left <= padding; ++left)
              if (after == cropped(before, top, left)) {
                ++matches;
                ++found[{top, left}];
              }
          REQUIRE(matches > 0);
        }
      CHECK(found.size() == static_cast<std::size_t>((2 * padding + 1) * (2 * padding + 1)));
    }
}

TEST_CASE(
    "a resized crop of a ramp is a ramp: the share and the ratio of the part are as drawn, and all places occur") {
  constexpr std::int64_t height = 40, width = 60;  // pixel (y, x) is (y, x) in two channels
  std::vector<float> ramp;
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) ramp.insert(ramp.end(), {static_cast<float>(y), static_cast<float>(x)});
  const MemoryDataset plain(ramp, Shape{height, width, 2}, std::vector<std::int32_t>{0});
  const TransformedDataset data(plain, {random_resized_crop(0.2, 0.5)});
  double least_share = 1, most_share = 0, least_ratio = 9, most_ratio = 0;
  float least_top = 99, most_bottom = 0;
  for (std::uint64_t epoch = 1; epoch <= 300; ++epoch) {
    const Pixels after = read_one(data, 0, epoch);
    // In the middle, far from the box's edges, a step of a pixel is the box's extent over the image's.
    const std::size_t middle = (20 * width + 30) * 2;
    const double box_height = (after[middle + 2 * width] - after[middle]) * height,
                 box_width = (after[middle + 3] - after[middle + 1]) * width;
    CHECK(std::abs(box_height - std::round(box_height)) < 0.01);  // whole pixels; float32 of 40 divided by 40
    CHECK(std::abs(box_width - std::round(box_width)) < 0.01);
    const double share = box_height * box_width / (height * width), ratio = box_width / box_height;
    least_share = std::min(least_share, share);
    most_share = std::max(most_share, share);
    least_ratio = std::min(least_ratio, ratio);
    most_ratio = std::max(most_ratio, ratio);
    const auto [low, high] = std::ranges::minmax(after);
    CHECK(low >= 0);
    CHECK(high <= width - 1 + 1e-4F);  // floats of up to 59, rounded a few times
    least_top = std::min(least_top, after[0]);
    most_bottom = std::max(most_bottom, after[after.size() - 2]);
  }
  CHECK(least_share > 0.17);  // 0.2, and the rounding of both sides to pixels
  CHECK(least_share < 0.25);
  CHECK(most_share > 0.9);
  CHECK(least_ratio > 0.47);
  CHECK(least_ratio < 0.6);
  CHECK(most_ratio < 2.1);
  CHECK(most_ratio > 1.7);
  CHECK(least_top == 0);
  CHECK(std::abs(most_bottom - (height - 1)) < 1e-4F);
  const TransformedDataset whole(plain, {random_resized_crop(1, 1)});  // no square of this area fits: the largest one
  const Pixels square = read_one(whole, 0, 1);
  CHECK(square[0] == 0);
  CHECK(square[1] == 10);                  // the left of the middle 40 columns
  CHECK(square[square.size() - 1] == 49);  // and the right
  const MemoryDataset dot(std::vector<float>{5}, Shape{1, 1, 1}, std::vector<std::int32_t>{0});
  CHECK(read_one(TransformedDataset(dot, {random_resized_crop()}), 0, 1) == Pixels{5});
}

TEST_CASE("a rotation turns a ramp around the middle, by angles up to the greatest; a quarter turn is exact") {
  constexpr std::int64_t side = 21;
  std::vector<float> ramp;
  for (std::int64_t y = 0; y < side; ++y)
    for (std::int64_t x = 0; x < side; ++x)
      ramp.insert(ramp.end(), {static_cast<float>(y - 10), static_cast<float>(x - 10)});
  const MemoryDataset plain(ramp, Shape{side, side, 2}, std::vector<std::int32_t>{0});
  const TransformedDataset data(plain, {random_rotation(40)});
  double least = 9, most = -9;
  for (std::uint64_t epoch = 1; epoch <= 200; ++epoch) {
    const Pixels after = read_one(data, 0, epoch);
    const auto at = [&](int y, int x, int c) {
      return after[static_cast<std::size_t>(((y + 10) * 21 + x + 10) * 2 + c)];
    };
    CHECK(std::abs(at(0, 0, 0)) < 1e-5F);  // the middle stays
    // Right of the middle, at a radius r, is now what was there turned back by the angle: (y, x) = (-r sin, r cos).
    const double angle = std::atan2(-at(0, 5, 0), at(0, 5, 1));
    CHECK(std::abs(std::hypot(at(0, 5, 0), at(0, 5, 1)) - 5) < 1e-4);
    CHECK(std::abs(at(5, 0, 0) - 5 * std::cos(angle)) < 1e-4);  // floats of up to 10, and four products
    CHECK(std::abs(at(5, 0, 1) - 5 * std::sin(angle)) < 1e-4);
    least = std::min(least, angle);
    most = std::max(most, angle);
  }
  constexpr double greatest = 40 * 3.14159265358979 / 180;
  CHECK(least > -greatest - 1e-4);
  CHECK(least < -0.9 * greatest);
  CHECK(most < greatest + 1e-4);
  CHECK(most > 0.9 * greatest);
  for (std::uint64_t sample = 0; sample < size; ++sample)
    CHECK(read_one(TransformedDataset(images(), {random_rotation(0)}), sample, 1) == read_one(images(), sample, 1));
}

TEST_CASE("what a rotation brings in from beyond the border is zero") {
  const MemoryDataset plain(std::vector<float>(400, 1), Shape{20, 20, 1}, std::vector<std::int32_t>{0});
  const TransformedDataset data(plain, {random_rotation(180)});
  bool corner_was_zero = false;
  for (std::uint64_t epoch = 1; epoch <= 20; ++epoch) {
    const Pixels after = read_one(data, 0, epoch);
    for (const float pixel : after) REQUIRE((pixel >= 0 && pixel < 1.00001F));
    CHECK(std::abs(after[10 * 20 + 10] - 1) < 1e-5F);
    corner_was_zero = corner_was_zero || after[0] == 0;
  }
  CHECK(corner_was_zero);
}

TEST_CASE("cutout clears one square, cut off at the border, around every pixel equally") {
  const MemoryDataset plain = images();
  for (const int side : {1, 2, 3, 9}) {
    const TransformedDataset data(plain, {cutout(side)});
    std::set<std::size_t> seen;
    for (std::uint64_t sample = 0; sample < size; ++sample)
      for (std::uint64_t epoch = 1; epoch <= 8; ++epoch) {
        const Pixels before = read_one(plain, sample, 0), after = read_one(data, sample, epoch);
        int matches = 0;
        for (int middle_y = 0; middle_y < 5; ++middle_y)
          for (int middle_x = 0; middle_x < 4; ++middle_x) {
            Pixels expected = before;
            for (int y = 0; y < 5; ++y)
              for (int x = 0; x < 4; ++x)
                if (y >= middle_y - side / 2 && y < middle_y - side / 2 + side && x >= middle_x - side / 2 &&
                    x < middle_x - side / 2 + side)
                  for (int c = 0; c < 3; ++c) expected[static_cast<std::size_t>((y * 4 + x) * 3 + c)] = 0;
            if (after != expected) continue;
            ++matches;
            seen.insert(static_cast<std::size_t>(middle_y * 4 + middle_x));
          }
        REQUIRE(matches > 0);
      }
    CHECK(seen.size() == 20);
  }
}

TEST_CASE("normalisation is (pixel - mean) / deviation by channel, in evaluations too, where nothing else is applied") {
  const MemoryDataset plain = images();
  const TransformedDataset data(plain, {random_flip(1), normalize({1, 20, -3}, {2, 0.5F, 3})});
  for (std::uint64_t sample = 0; sample < size; ++sample) {
    const Pixels before = read_one(plain, sample, 0), evaluated = read_one(data, sample, 0);
    for (std::size_t i = 0; i < before.size(); i += 3) {
      REQUIRE(evaluated[i] == (before[i] - 1) / 2);
      REQUIRE(evaluated[i + 1] == (before[i + 1] - 20) / 0.5F);
      REQUIRE(evaluated[i + 2] == (before[i + 2] + 3) / 3);
    }
    CHECK(read_one(data, sample, 1) != evaluated);
  }
  const auto named = [](float mean) { return normalize({mean}, {1}).name; };
  CHECK(named(0.1F) != named(std::nextafter(0.1F, 1.0F)));  // equal names change samples alike
}

TEST_CASE("changing samples takes nothing from the heap") {
  const MemoryDataset plain = images();
  const TransformedDataset data(plain, all_of_them());
  Batch batch(data.fields(), 10);
  const std::vector<std::uint64_t> samples{3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
  data.read({samples, 1, 7}, batch);
  const long before = test::allocations();
  for (const std::uint64_t epoch : {0, 1, 2, 3}) data.read({samples, epoch, 7}, batch);
  CHECK(test::allocations() == before);
}
