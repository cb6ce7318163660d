#include <ronda/runtime/strategy/exchange/dense_exchange.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored.hpp>

namespace ronda {
namespace {

class MirroredPlan final : public ExchangePlan {
 public:
  std::unique_ptr<GradientExchange> make(Communicator& communicator, Replica& replica, const ExchangeSettings& settings,
                                         EventSink& sink) const override {
    return make_dense_exchange(communicator, replica, settings, sink);
  }
};

}  // namespace

std::unique_ptr<ExchangePlan> exchange_plan(const Mirrored& /*options*/) { return std::make_unique<MirroredPlan>(); }

}  // namespace ronda
