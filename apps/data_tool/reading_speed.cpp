#include "reading_speed.hpp"

#include <chrono>
#include <cmath>
#include <vector>

#include <ronda/data/batch_plan.hpp>
#include <ronda/data/loader.hpp>

namespace ronda::apps {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

ReadingSpeed measure_reading(const Dataset& data, std::size_t batch_size, double seconds, std::uint64_t seed,
                             Progress& progress) {
  BatchLoader loader(data, SampleOrder(data.size(), seed, true), BatchPlan(data.size(), batch_size));
  static_cast<void>(loader.next());
  ReadingSpeed speed;
  const auto begin = std::chrono::steady_clock::now();
  do {
    speed.samples += loader.next().real();
    speed.seconds = seconds_since(begin);
    const double all = static_cast<double>(speed.samples) * seconds / speed.seconds;
    progress.at(speed.samples, static_cast<std::size_t>(std::ceil(all)));
  } while (speed.seconds < seconds);
  return speed;
}

}  // namespace ronda::apps
