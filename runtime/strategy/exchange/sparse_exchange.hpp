#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/runtime/strategy/step/gradient_exchange.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

namespace ronda {

/// The exchange of a model with sparse tables: another exchange for all other gradients, and for each table a sparse
/// allreduce, which starts when its gradient is ready. Every rank gets the sums of all touched rows, and updates them.
class SparseExchange final : public GradientExchange {
 public:
  /// Collective.
  /// @param dense    of the replica's other gradients
  /// @param replica  has its arenas; outlives this object
  /// @param algorithm  see SparseAllreduceSpec
  SparseExchange(Communicator communicator, std::unique_ptr<GradientExchange> dense, Replica& replica,
                 AllreduceAlgorithm algorithm);

  void begin() override { dense_->begin(); }
  void mark_ready(ParameterId id, Stream& stream) override;
  void reduce(Sums wanted, Stream& stream) override;
  void update(FunctionRef<void(const ArenaRange&)> apply, Stream& stream) override;
  void publish(UpdateOutcome* outcome, Stream& stream) override { dense_->publish(outcome, stream); }

  [[nodiscard]] ExchangeTraits traits() noexcept override {
    ExchangeTraits traits = dense_->traits();
    traits.moves_alone = false;  // the host reads which rows there are
    return traits;
  }
  [[nodiscard]] ExchangeReport report() const override;
  [[nodiscard]] double exposed_seconds() const noexcept override {
    return dense_->exposed_seconds() + exposed_seconds_;
  }

 private:
  struct Table {
    GradientSlot slot;
    std::unique_ptr<Collective> sum;
    Event done{};
  };

  std::unique_ptr<GradientExchange> dense_;
  std::vector<Table> tables_;
  ArenaRange rows_;
  double exposed_seconds_ = 0;
};

}  // namespace ronda
