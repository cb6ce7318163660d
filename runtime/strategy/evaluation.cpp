#include <ronda/core/number.hpp>
#include <ronda/runtime/strategy/evaluation.hpp>

#include <vector>

namespace ronda {
namespace {

void show(const SeeOutputs& see, const Batch& batch, const Tensor& outputs) {
  if (outputs.dtype() == DType::float32) return see(batch, outputs);
  std::vector<float> numbers = floats_of(outputs);
  see(batch, Tensor({outputs.shape(), DType::float32, outputs.desc().layout}, numbers.data()));
}

/// Collects the states to average.
class Averaged final : public StateVisitor {
 public:
  void visit(const State& state) override {
    if (state.scope == Scope::averaged && state.tensor.dtype() == DType::float32) tensors.push_back(state.tensor);
  }
  std::vector<Tensor> tensors;
};

}  // namespace

Evaluation evaluate(Replica& replica, StepQueue& queue, Communicator& communicator, BatchLoader& loader,
                    std::uint64_t updates, ControlBlock& sums, HostCopy& host, const SeeOutputs& see) {
  const std::size_t batches = loader.plan().steps_per_epoch() * loader.plan().micro_batches();
  sums.clear();
  for (std::size_t i = 0; i < batches; ++i) {
    const Batch& given = loader.next();
    replica.check(given);
    const Batch& batch = queue.place(given);
    const Tensor& outputs = replica.evaluate(batch, replica.pass(Mode::evaluation, batch, updates, sums.there()));
    if (see) show(see, given, host.of(outputs));
  }
  StepControl total = sums.read();
  communicator.allreduce(Tensor(std::span(&total.loss, StepControl::count)));
  if (total.weight == 0) return {};
  return {total.loss / total.weight, total.metric / total.weight};
}

/// The sum of equal float32 numbers is exact in float64.
void average_states(const Replica& replica, Communicator& communicator) {
  if (communicator.size() == 1) return;
  Averaged states;
  replica.visit_layer_states(states);
  std::vector<double> sums;
  for (const auto& tensor : states.tensors) {
    std::vector<float> mine(static_cast<std::size_t>(tensor.desc().count()));
    reorder(tensor, Tensor({tensor.shape(), DType::float32, {}}, mine.data()));
    sums.insert(sums.end(), mine.begin(), mine.end());
  }
  if (sums.empty()) return;
  communicator.allreduce(Tensor(std::span(sums)));
  auto sum = sums.begin();
  for (const auto& tensor : states.tensors) {
    std::vector<float> means(static_cast<std::size_t>(tensor.desc().count()));
    for (float& mean : means) mean = static_cast<float>(*sum++ / communicator.size());
    reorder(Tensor({tensor.shape(), DType::float32, {}}, means.data()), tensor);
  }
}

}  // namespace ronda
