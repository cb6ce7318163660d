#pragma once
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>

#include <ronda/core/error.hpp>
#include <ronda/optim/adabelief.hpp>
#include <ronda/optim/adadelta.hpp>
#include <ronda/optim/adagrad.hpp>
#include <ronda/optim/adam.hpp>
#include <ronda/optim/kernel_updater.hpp>
#include <ronda/optim/lamb.hpp>
#include <ronda/optim/lars.hpp>
#include <ronda/optim/lion.hpp>
#include <ronda/optim/nadam.hpp>
#include <ronda/optim/rmsprop.hpp>
#include <ronda/optim/rule_optimizer.hpp>
#include <ronda/optim/sgd.hpp>

namespace ronda {

/// The rules of make_optimizer and of the GPU updater. To add a rule, write its file and add its name here.
using BuiltInRules = std::tuple<Sgd, Momentum, Adam, Lars, PlainRmsProp, MomentumRmsProp, CenteredRmsProp,
                                CenteredMomentumRmsProp, Adagrad, Adadelta, Lion, Lamb, NAdam, AdaBelief>;

/// Calls body(std::type_identity<Rule>()) for each of them.
template <class Body>
void for_each_rule(Body&& body) {
  [&]<class... Rules>(std::type_identity<std::tuple<Rules...>>) {
    (body(std::type_identity<Rules>()), ...);
  }(std::type_identity<BuiltInRules>());
}

/// Returns body(rule) for the rule of `optimizer`; a unique_ptr. Throws InputError if the rule is not built in.
template <class Result, class Body>
Result with_rule(const Optimizer& optimizer, Body&& body) {
  Result result;
  for_each_rule([&]<class Rule>(std::type_identity<Rule>) {
    if (const auto* found = dynamic_cast<const RuleOptimizer<Rule>*>(&optimizer)) result = body(found->rule());
  });
  if (!result && optimizer.on_processor_alone())
    throw InputError("the optimizer '" + std::string(optimizer.name()) +
                     "' computes on the processor alone, and in float32: take " + setting("device", "cpu") + " and " +
                     setting("precision", "float32") + ", or another optimizer");
  if (!result)
    throw InputError("the optimizer '" + std::string(optimizer.name()) +
                     "' has a rule of its own: make its updater from KernelUpdater<Rule, …>, and give it as "
                     "MirroredOptions::platform.make_updater");
  return result;
}

/// An updater made of kernels, for the optimizer's rule and the type of the gradients; see MakeUpdater and
/// KernelUpdater. Throws as with_rule.
template <class Launch>
[[nodiscard]] std::unique_ptr<Updater> make_kernel_updater(DeviceContext& context, Optimizer& optimizer,
                                                           const OptimizerBindings& bindings, const LayerArenas& layers,
                                                           std::size_t count, const UpdaterOptions& options,
                                                           Stream& stream) {
  return with_number(layers.dtype, [&]<class T>(std::type_identity<T>) {
    return with_rule<std::unique_ptr<Updater>>(optimizer, [&]<class Rule>(const Rule& rule) {
      return std::make_unique<KernelUpdater<Rule, T, Launch>>(context, rule, optimizer, bindings, layers, count,
                                                              options, stream);
    });
  });
}

}  // namespace ronda
