#include <ronda/core/multiversion.hpp>
#include <ronda/optim/adam.hpp>
#include <ronda/optim/update_loop.hpp>

#include <array>

namespace ronda {
namespace {

RONDA_MULTIVERSION bool adam(const ArenaPart& part, rules::Scalars s) {
  return update_each<2>(part, [=](float& value, float summed, float& mean, float& square)
                                  RONDA_INLINE { rules::adam(s, value, summed, mean, square); });
}

}  // namespace

std::span<const std::string_view> Adam::states() const noexcept {
  static constexpr std::array<std::string_view, 2> names{"exp_avg", "exp_avg_sq"};
  return names;
}

bool Adam::update(const ArenaPart& part, const rules::Scalars& s) const noexcept { return adam(part, s); }

rules::Hyperparameters Adam::hyperparameters() const noexcept {
  return {.kind = rules::Kind::adam,
          .weight_decay = weight_decay(),
          .beta1 = beta1_,
          .beta2 = beta2_,
          .epsilon = epsilon_,
          .decoupled = decay_ == Decay::decoupled};
}

}  // namespace ronda
