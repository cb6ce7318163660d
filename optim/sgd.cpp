#include <ronda/core/multiversion.hpp>
#include <ronda/optim/sgd.hpp>
#include <ronda/optim/update_loop.hpp>

#include <array>

namespace ronda {
namespace {

RONDA_MULTIVERSION bool descend(const ArenaPart& part, rules::Scalars s) {
  return update_each<0>(part,
                        [=](float& value, float summed, float&, float&) RONDA_INLINE { rules::sgd(s, value, summed); });
}

RONDA_MULTIVERSION bool descend_with_momentum(const ArenaPart& part, rules::Scalars s) {
  return update_each<1>(part, [=](float& value, float summed, float& velocity, float&)
                                  RONDA_INLINE { rules::momentum(s, value, summed, velocity); });
}

}  // namespace

bool Sgd::update(const ArenaPart& part, const rules::Scalars& s) const noexcept { return descend(part, s); }

rules::Hyperparameters Sgd::hyperparameters() const noexcept {
  return {.kind = rules::Kind::sgd, .weight_decay = weight_decay()};
}

std::span<const std::string_view> Momentum::states() const noexcept {
  static constexpr std::array<std::string_view, 1> names{"momentum_buffer"};
  return names;
}

bool Momentum::update(const ArenaPart& part, const rules::Scalars& s) const noexcept {
  return descend_with_momentum(part, s);
}

rules::Hyperparameters Momentum::hyperparameters() const noexcept {
  return {.kind = rules::Kind::momentum, .weight_decay = weight_decay(), .momentum = momentum_, .nesterov = nesterov_};
}

}  // namespace ronda
