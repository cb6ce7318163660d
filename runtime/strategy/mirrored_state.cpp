// What a mirrored strategy keeps from step to step, shown to checkpoints and held to be equal on all ranks.
#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/runtime/strategy/mirrored_strategy.hpp>

#include <cstddef>

namespace ronda {
namespace {

/// Sets what a model's layers keep to its means over all ranks. Equal numbers stay as they are, to the bit: their sum
/// is exact in float64.
class Averaging final : public StateVisitor {
 public:
  explicit Averaging(Communicator& communicator) : communicator_(communicator) {}
  void visit(const State& state) override {
    if (state.scope != Scope::averaged || state.tensor.dtype() != DType::float32) return;
    states_.push_back(state.tensor);
  }
  void run() {
    std::vector<double> sums;
    for (const auto& tensor : states_) {
      std::vector<float> mine(static_cast<std::size_t>(tensor.desc().count()));
      reorder(tensor, Tensor({tensor.shape(), DType::float32, {}}, mine.data()));
      sums.insert(sums.end(), mine.begin(), mine.end());
    }
    if (sums.empty()) return;
    communicator_.allreduce(Tensor(std::span(sums)));
    auto sum = sums.begin();
    for (const auto& tensor : states_) {
      std::vector<float> means(static_cast<std::size_t>(tensor.desc().count()));
      for (float& mean : means) mean = static_cast<float>(*sum++ / communicator_.size());
      reorder(Tensor({tensor.shape(), DType::float32, {}}, means.data()), tensor);
    }
  }

 private:
  Communicator& communicator_;
  std::vector<Tensor> states_;
};

}  // namespace

void MirroredStrategy::visit(StateVisitor& visitor) {
  for (const auto& parameter : parameters_)
    visitor.visit({parameter.name, parameter.trained(), Scope::replicated, parameter.flattened});
  optimizer_->visit(visitor);
  if (scale_.bytes() > 0) {
    const auto number = [&](const char* name, std::size_t place) {
      visitor.visit(
          {name, {{Shape{1}, DType::float32, {}}, scale_.data() + place, scale_.device()}, Scope::replicated});
    };
    number("loss_scale", offsetof(LossScale, scale));
    number("loss_scale.good_steps", offsetof(LossScale, good_steps));
  }
  model_.visit(visitor);
  gradients_->visit(visitor);
}

void MirroredStrategy::set_updates(std::uint64_t updates) {
  if (steps_in_flight() > 0) throw LogicError("set_updates with steps in flight; finish_step gives their results");
  updates_ = updates;
  if (!device_) return;
  device_->set_updates(updates);
  device_->round_values();
}

void MirroredStrategy::average_states() {
  if (communicator_.size() == 1) return;
  Averaging averaging(communicator_);
  model_.visit(averaging);
  averaging.run();
}

void MirroredStrategy::gather_state() {
  if (!node_update_) return;
  std::vector<float*> states;
  for (std::size_t s = 0; s < optimizer_->states().size(); ++s)
    states.push_back(reinterpret_cast<float*>(states_.data() + s * arena_bytes_));
  node_update_->gather(states);
}

void MirroredStrategy::broadcast_parameters() {
  const auto count = static_cast<std::int64_t>(elements());
  communicator_.broadcast(Tensor({Shape{count}, DType::float32, {}}, trained().data(), trained().device()));
  if (device_) device_->round_values();
}

std::string MirroredStrategy::parameter_hash() const {
  Hash hash;
  for (const auto& parameter : parameters_) {
    const std::vector<float> values = to_file(parameter, shown(parameter.trained()));
    hash.add(parameter.name).add(std::as_bytes(std::span(values)));
  }
  std::string mine = hash.text();
  const auto all = communicator_.gather_texts(mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0]) {
      Error error("the replicas differ: parameters hash to " + all[0] + " on rank 0 and to " + all[rank] + " on rank " +
                  std::to_string(rank));
      error.set_agreed();
      throw error;
    }
  return mine;
}

}  // namespace ronda
