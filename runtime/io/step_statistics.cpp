#include <ronda/runtime/io/step_statistics.hpp>

#include <algorithm>
#include <cmath>

namespace ronda {
namespace {

// Buckets of equal ratio: 128 for each factor of two, from a nanosecond (2^-30 s) to half an hour (2^11 s).
constexpr int per_octave = 128, first_octave = -30, last_octave = 11;
constexpr std::size_t buckets = static_cast<std::size_t>(last_octave - first_octave) * per_octave;

std::size_t bucket_of(double seconds) {
  const double place = (std::log2(std::max(seconds, 0x1p-30)) - first_octave) * per_octave;
  return std::min(static_cast<std::size_t>(place), buckets - 1);
}

double middle_of(std::size_t bucket) {
  return std::exp2((static_cast<double>(bucket) + 0.5) / per_octave + first_octave);
}

}  // namespace

StepStatistics::StepStatistics() : histogram_(buckets) {}

void StepStatistics::on_step(const StepReport& report) {
  if (steps_ < warmup) {
    warmup_samples_ += report.samples;
    warmup_seconds_ += report.seconds;
    warmup_buckets_[steps_] = bucket_of(report.seconds);
  } else {
    ++histogram_[bucket_of(report.seconds)];
  }
  ++steps_;
  samples_ += report.samples;
  seconds_ += report.seconds;
  times_ += report.times;
}

double StepStatistics::samples_per_second() const noexcept {
  const std::uint64_t samples = skips_warmup() ? samples_ - warmup_samples_ : samples_;
  const double seconds = skips_warmup() ? seconds_ - warmup_seconds_ : seconds_;
  return seconds > 0 ? static_cast<double>(samples) / seconds : 0;
}

double StepStatistics::microseconds(double share) const {
  auto counts = histogram_;
  std::uint64_t counted = steps_ - std::min(steps_, warmup);
  if (!skips_warmup())
    for (std::uint64_t step = 0; step < std::min(steps_, warmup); ++step, ++counted) ++counts[warmup_buckets_[step]];
  if (counted == 0) return 0;
  const auto wanted =
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(counted))));
  std::uint64_t below = 0;
  std::size_t bucket = 0;
  while (bucket + 1 < counts.size() && (below += counts[bucket]) < wanted) ++bucket;
  return 1e6 * middle_of(bucket);
}

}  // namespace ronda
