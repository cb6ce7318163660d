#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/exchange/own_exchange.hpp>

#include <utility>

namespace ronda {
namespace {

class OwnPlan final : public ExchangePlan {
 public:
  explicit OwnPlan(OwnExchange options) : options_(std::move(options)) {}

  void require_possible(const Replica& replica, const Optimizer& /*optimizer*/,
                        const ExchangeSettings& /*settings*/) const override {
    if (!options_.make) throw InputError("OwnExchange::make is empty; give a function that makes the exchange");
    if (replica.plan().widens())
      throw InputError("an exchange of the program (OwnExchange) sums gradients in their own type; leave " +
                       setting("reduce_dtype") + " out");
  }
  std::unique_ptr<GradientExchange> make(Communicator& communicator, Replica& replica,
                                         const ExchangeSettings& /*settings*/, EventSink& /*sink*/) const override {
    agree(communicator, [&] { take_own_arenas(replica); });
    return options_.make(communicator, replica);
  }

 private:
  OwnExchange options_;
};

}  // namespace

std::unique_ptr<ExchangePlan> exchange_plan(OwnExchange options) {
  return std::make_unique<OwnPlan>(std::move(options));
}

}  // namespace ronda
