#pragma once
#include <algorithm>
#include <vector>

#include <ronda/core/event_sink.hpp>

namespace ronda {

/// Forwards every event to several sinks, in the order in which they were added. They must outlive it.
class FanOut final : public EventSink {
 public:
  void add(EventSink& sink) { sinks_.push_back(&sink); }

  void on_note(std::string_view text) override {
    for (auto* sink : sinks_) sink->on_note(text);
  }
  void on_detail(std::string_view text) override {
    for (auto* sink : sinks_) sink->on_detail(text);
  }
  [[nodiscard]] bool wants_details() const override {
    return std::ranges::any_of(sinks_, [](const EventSink* sink) { return sink->wants_details(); });
  }
  void on_warning(std::string_view text) override {
    for (auto* sink : sinks_) sink->on_warning(text);
  }
  void on_start(const StartReport& report) override {
    for (auto* sink : sinks_) sink->on_start(report);
  }
  void on_checkpoint(std::uint64_t step) override {
    for (auto* sink : sinks_) sink->on_checkpoint(step);
  }
  void on_step(const StepReport& report) override {
    for (auto* sink : sinks_) sink->on_step(report);
  }
  void on_epoch(const EpochReport& report) override {
    for (auto* sink : sinks_) sink->on_epoch(report);
  }

 private:
  std::vector<EventSink*> sinks_;
};

}  // namespace ronda
