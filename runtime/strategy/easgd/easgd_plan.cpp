#include <ronda/runtime/strategy/easgd/easgd.hpp>
#include <ronda/runtime/strategy/easgd/elastic_steps.hpp>
#include <ronda/runtime/strategy/exchange/local_replicas.hpp>
#include <ronda/runtime/strategy/step/exchange_plan.hpp>

namespace ronda {
namespace {

class EasgdPlan final : public ExchangePlan {
 public:
  explicit EasgdPlan(const Easgd& options) : options_(options) {}

  std::unique_ptr<GradientExchange> make(Communicator& communicator, Replica& replica, const ExchangeSettings& settings,
                                         EventSink& /*sink*/) const override {
    agree(communicator, [&] {
      check(options_, communicator.size());
      require_local_steps(replica, Easgd::name);
      take_own_arenas(replica);
    });
    return std::make_unique<ElasticSteps>(communicator, replica, options_, settings.fusion);
  }

 private:
  Easgd options_;
};

}  // namespace

std::unique_ptr<ExchangePlan> exchange_plan(const Easgd& options) { return std::make_unique<EasgdPlan>(options); }

}  // namespace ronda
