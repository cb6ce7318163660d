#include "progress.hpp"

#include <iostream>
#include <utility>

#include <ronda/runtime/io/console.hpp>

namespace ronda::apps {

Progress::Progress(std::string tool, std::string unit)
    : tool_(std::move(tool)),
      unit_(std::move(unit)),
      width_(terminal_width(2)),
      next_(Clock::now() + std::chrono::seconds(1)) {}

Progress::~Progress() { clear(); }

void Progress::at(std::size_t done, std::size_t all) {
  if (Clock::now() < next_) return;
  next_ = Clock::now() + std::chrono::seconds(width_ > 0 ? 1 : 10);
  const std::string text = tool_ + ": " + std::to_string(done) + " of " + std::to_string(all) + " " + unit_;
  std::cerr << (width_ > 0 ? "\r\x1b[K" + text : text + "\n") << std::flush;
  shown_ = width_ > 0;
}

void Progress::clear() {
  if (std::exchange(shown_, false)) std::cerr << "\r\x1b[K" << std::flush;
}

}  // namespace ronda::apps
