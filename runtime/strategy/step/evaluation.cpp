#include <ronda/core/error.hpp>
#include <ronda/core/number.hpp>
#include <ronda/runtime/strategy/step/evaluation.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace ronda {
namespace {

void require_whole(const MetricValue& value) {
  const auto wanted = static_cast<std::size_t>(value.shape.count());
  if (value.values.size() != wanted)
    throw LogicError("the metric " + value.metric.name + " has the shape " + value.shape.text() + ", which is " +
                     std::to_string(wanted) + " of " + setting("values") + ", and " +
                     std::to_string(value.values.size()) + " are there");
}

/// The sums of several metrics, one behind the other, behind the sums of the loss: all go in one allreduce.
class Sums {
 public:
  Sums(const Metrics& metrics, const Shape& outputs) : metrics_(metrics) {
    std::size_t count = StepControl::count;
    for (const SummedMetric* metric : metrics) {
      places_.push_back(count);
      count += metric->sums(outputs);
    }
    places_.push_back(count);
    sums_.resize(count);
  }

  void add(const Tensor& outputs, const Tensor& targets, const Tensor& weights) {
    for (std::size_t i = 0; i < metrics_.size(); ++i)
      metrics_[i]->add(outputs, targets, weights.as<const float>(), of_metric(i));
  }
  void reduce(const StepControl& loss, Communicator& communicator) {
    std::copy_n(&loss.loss, StepControl::count, sums_.begin());
    communicator.allreduce(Tensor(std::span(sums_)));
  }
  [[nodiscard]] Evaluation result() {
    StepControl total;
    std::copy_n(sums_.begin(), StepControl::count, &total.loss);
    if (total.weight == 0)
      throw InputError(
          "no sample of the test counts: all have the weight 0, as those that are damaged, and whose label is ignored "
          "or of a class with weight 0");
    Evaluation result{total.loss / total.weight, total.metric / total.weight};
    for (std::size_t i = 0; i < metrics_.size(); ++i)
      for (MetricValue& value : metrics_[i]->values(of_metric(i))) {
        require_whole(value);
        result.metrics.push_back(std::move(value));
      }
    return result;
  }

 private:
  [[nodiscard]] std::span<double> of_metric(std::size_t i) {
    return std::span(sums_).subspan(places_[i], places_[i + 1] - places_[i]);
  }

  const Metrics& metrics_;
  std::vector<std::size_t> places_;
  std::vector<double> sums_;
};

/// Outputs in float32, in memory that stays until the next call.
class InFloat32 {
 public:
  Tensor of(const Tensor& outputs) {
    if (outputs.dtype() == DType::float32) return outputs;
    numbers_ = floats_of(outputs);
    return {{outputs.shape(), DType::float32, outputs.desc().layout}, numbers_.data()};
  }

 private:
  std::vector<float> numbers_;
};

/// Collects the states to average, and, if wanted, those that are the same on all ranks that compute.
class Averaged final : public StateVisitor {
 public:
  explicit Averaged(bool with_replicated) : with_replicated_(with_replicated) {}
  void visit(const State& state) override {
    const bool wanted = state.scope == Scope::averaged || (with_replicated_ && state.scope == Scope::replicated);
    if (wanted && state.tensor.dtype() == DType::float32) tensors.push_back(state.tensor);
  }
  std::vector<Tensor> tensors;

 private:
  bool with_replicated_;
};

/// The sum of equal float32 numbers is exact in float64.
/// @param all_take  the mean; else the ranks that do not compute
void take_means(const Replica& replica, Communicator& communicator, const Shard& computing, bool has_samples,
                bool all_take) {
  const bool computes = !computing.is_empty(), gives = computes && has_samples;
  Averaged states(computing.count < static_cast<std::size_t>(communicator.size()));
  replica.visit_layer_states(states);
  std::vector<double> sums;
  for (const auto& tensor : states.tensors) {
    std::vector<float> mine(static_cast<std::size_t>(tensor.desc().count()));
    if (gives) reorder(tensor, Tensor({tensor.shape(), DType::float32, {}}, mine.data()));
    sums.insert(sums.end(), mine.begin(), mine.end());
  }
  if (sums.empty()) return;
  sums.push_back(gives ? 1 : 0);
  communicator.allreduce(Tensor(std::span(sums)));
  if (computes && !all_take) return;
  auto sum = sums.begin();
  for (const auto& tensor : states.tensors) {
    std::vector<float> means(static_cast<std::size_t>(tensor.desc().count()));
    for (float& mean : means) mean = static_cast<float>(*sum++ / sums.back());
    reorder(Tensor({tensor.shape(), DType::float32, {}}, means.data()), tensor);
  }
}

}  // namespace

Evaluation evaluate(const EvaluationParts& parts, BatchLoader& loader, FunctionRef<Outputs(const Batch&)> compute) {
  const BatchPlan& plan = loader.plan();
  const std::size_t batches = plan.is_empty() ? 0 : plan.steps_per_epoch() * plan.micro_batches();
  Sums all(parts.metrics, parts.outputs);
  HostCopy targets(parts.device), weights(parts.device);
  InFloat32 numbers;
  parts.sums.clear();
  for (std::size_t i = 0; i < batches; ++i) {
    const Batch& given = loader.next();
    const Outputs outputs = compute(given);
    if (outputs.tensor == nullptr || (!parts.see && parts.metrics.empty())) continue;
    const Tensor here = numbers.of(parts.host.of(*outputs.tensor));
    if (parts.see) parts.see(given, here);
    if (!parts.metrics.empty()) all.add(here, targets.of(outputs.here.target()), weights.of(outputs.here.weights()));
  }
  all.reduce(parts.sums.read(), parts.communicator);
  return all.result();
}

void average_states(const Replica& replica, Communicator& communicator, const Shard& computing, bool has_samples) {
  if (communicator.size() > 1) take_means(replica, communicator, computing, has_samples, true);
}

void give_states(const Replica& replica, Communicator& communicator, const Shard& computing, bool has_samples) {
  if (computing.count < static_cast<std::size_t>(communicator.size()))
    take_means(replica, communicator, computing, has_samples, false);
}

}  // namespace ronda
