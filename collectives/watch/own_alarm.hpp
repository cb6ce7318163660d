#pragma once
#include <cstdint>

#include <ronda/collectives/watch/recorder.hpp>

namespace ronda {

/// This rank's alarm: it has waited for others longer than a limit, and nothing has moved. Others see it in its record.
class OwnAlarm {
 public:
  explicit OwnAlarm(Recorder& recorder) : recorder_(recorder) {}

  [[nodiscard]] bool raised() const noexcept { return raised_; }
  /// Does this rank wait, and has it for more than `limit` seconds? True where the alarm was raised just now.
  bool watch(double now, double limit) noexcept;
  /// What was found so far is forgotten: whatever was late has come.
  void forget(double now) noexcept;

 private:
  void set(bool raised) noexcept { recorder_.set_alarmed(raised_ = raised); }

  Recorder& recorder_;
  std::uint64_t moves_ = 0;  ///< last seen
  double since_ = 0;         ///< when they changed, or this rank waited for nobody
  bool raised_ = false;
};

}  // namespace ronda
