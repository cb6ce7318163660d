#pragma once
#include <memory>
#include <utility>
#include <vector>

#include <ronda/collectives/host/engine/algorithm.hpp>

namespace ronda {

/// Algorithms one after the other.
class Sequence final : public Algorithm {
 public:
  template <class... Steps>
  explicit Sequence(std::unique_ptr<Steps>... steps) {
    (steps_.push_back(std::move(steps)), ...);
  }

  Task run() override {
    for (const auto& step : steps_) co_await step->run();
  }
  void visit_traffic(const std::function<void(Traffic&)>& visit) override {
    for (const auto& step : steps_) step->visit_traffic(visit);
  }
  void prepare() override {
    Algorithm::prepare();
    for (const auto& step : steps_) step->prepare();
  }

 private:
  std::vector<std::unique_ptr<Algorithm>> steps_;
};

}  // namespace ronda
