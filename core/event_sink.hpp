#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/message.hpp>
#include <ronda/core/metric.hpp>

namespace ronda {

/// Time per phase of a step, in seconds of the computing thread.
struct StepTimes {
  double data = 0, forward = 0, backward = 0, communication = 0, optimizer = 0;  ///< communication: exposed part
  [[nodiscard]] double total() const noexcept { return data + forward + backward + communication + optimizer; }
  StepTimes& operator+=(const StepTimes& other) noexcept {
    data += other.data;
    forward += other.forward;
    backward += other.backward;
    communication += other.communication;
    optimizer += other.optimizer;
    return *this;
  }
};

/// Where a training starts.
struct StartReport {
  std::uint64_t step = 0;   ///< completed steps: 0, or those of the checkpoint
  std::uint64_t epoch = 1;  ///< the epoch that continues, from 1; its evaluation is still to come
  Metric metric = {};
  bool validates = false;   ///< epochs are evaluated with validation data
  std::uint64_t steps = 0;  ///< planned steps of the whole training; 0: unknown
};

struct StepReport {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  std::uint64_t step = 0;   ///< from 1, over all epochs
  std::uint64_t epoch = 0;  ///< from 1
  std::uint64_t step_in_epoch = 0, steps_in_epoch = 0;
  /// Exact mean over the global batch, before the update; `unknown` if all its samples have weight 0, and in a local
  /// SGD step that does not synchronise.
  double loss = 0;
  double metric = 0;  ///< likewise; see StartReport::metric
  double learning_rate = 0;
  std::uint64_t samples = 0;  ///< samples of this step, over all ranks
  double seconds = 0;         ///< wall time of this step
  StepTimes times;
};

struct EpochReport {
  std::uint64_t epoch = 0, epochs = 0;
  double train_loss = 0, train_metric = 0;  ///< exact, over all ranks and samples of the epoch
  double test_loss = 0, test_metric = 0;    ///< every test sample once
  bool evaluated = false;                   ///< the two are known
  double validation_loss = 0, validation_metric = 0;
  bool validated = false;                                               ///< the two are known
  std::vector<MetricValue> test_metrics = {}, validation_metrics = {};  ///< metrics that were added to the training
  double seconds = 0;                                                   ///< training only
  std::uint64_t samples = 0;
  StepTimes times;  ///< times of this rank, summed over the epoch
};

enum class Severity { detail, note, warning };

/// Receives the events of a training. The library itself prints nothing.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_note(std::string_view /*text*/) {}    ///< printed always
  virtual void on_detail(std::string_view /*text*/) {}  ///< printed with --verbose
  /// Whether details are used: some take time to compute.
  [[nodiscard]] virtual bool wants_details() const { return false; }
  virtual void on_warning(std::string_view /*text*/) {}  ///< a fallback was taken; training continues
  /// A detail, a note or a warning that names options. By default calls the function above for its severity, with the
  /// names of C++.
  virtual void on_message(Severity severity, const Message& message) { on_text(severity, message.text()); }
  virtual void on_start(const StartReport&) {}
  virtual void on_step(const StepReport&) {}
  /// The state after `step` is about to be saved: flush the output of the steps so far, so that it is not lost.
  virtual void on_checkpoint(std::uint64_t /*step*/) {}
  virtual void on_epoch(const EpochReport&) {}

 protected:
  void on_text(Severity severity, std::string_view text) {
    switch (severity) {
      case Severity::detail: return on_detail(text);
      case Severity::note: return on_note(text);
      case Severity::warning: return on_warning(text);
    }
  }
};

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
  void on_message(Severity severity, const Message& message) override {
    for (auto* sink : sinks_) sink->on_message(severity, message);
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
