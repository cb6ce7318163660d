#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/rule.hpp>

namespace ronda {

/// The optimizer for a rule. For your own rule:
///
///     RuleOptimizer<Mine>("mine", Mine(), weight_decay, update_each<Mine>)  // update_loop.hpp
template <UpdateRule Rule>
class RuleOptimizer final : public Optimizer {
 public:
  using Loop = bool (*)(const ArenaPart&, const typename Rule::Scalars&);
  using FirstPass = double (*)(const ArenaPart&, const typename Rule::Scalars&);

  /// @param name          in messages and in the plan
  /// @param weight_decay  for groups without one
  /// @param loop          update_each<Rule>, or the same compiled for several instruction sets: see RONDA_UPDATE_LOOP
  RuleOptimizer(std::string name, const Rule& rule, double weight_decay, Loop loop) requires(!TwoPassRule<Rule>)
      : Optimizer(weight_decay), name_(std::move(name)), rule_(rule), loop_(loop) {}
  /// The same for a TwoPassRule.
  /// @param first_pass  propose_each<Rule>, or the function of RONDA_PROPOSE_LOOP
  RuleOptimizer(std::string name, const Rule& rule, double weight_decay, Loop loop,
                FirstPass first_pass) requires TwoPassRule<Rule>
      : Optimizer(weight_decay), name_(std::move(name)), rule_(rule), loop_(loop), first_pass_(first_pass) {}

  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] std::span<const std::string_view> states() const noexcept override { return Rule::states; }
  [[nodiscard]] bool needs_norms() const noexcept override { return Rule::needs_norms; }
  [[nodiscard]] bool has_two_passes() const noexcept override { return TwoPassRule<Rule>; }
  [[nodiscard]] const Rule& rule() const noexcept { return rule_; }

 private:
  void prepare(std::span<const RuleStep> steps) override {
    scalars_.resize(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) scalars_[i] = rule_.scalars(steps[i]);
  }
  [[nodiscard]] bool update(const ArenaPart& part, std::size_t parameter) const noexcept override {
    return loop_(part, scalars_[parameter]);
  }
  [[nodiscard]] double propose(const ArenaPart& part, std::size_t parameter) const noexcept override {
    return first_pass_(part, scalars_[parameter]);
  }

  std::string name_;
  Rule rule_;
  Loop loop_;
  FirstPass first_pass_ = nullptr;
  std::vector<typename Rule::Scalars> scalars_;  ///< by parameter, for the current step
};

}  // namespace ronda
