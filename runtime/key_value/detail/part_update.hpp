#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/runtime/key_value/key_value_store.hpp>

namespace ronda {

/// What changes the values of one part.
class PartUpdate {
 public:
  virtual ~PartUpdate() = default;
  /// @param update    how often it was called before
  /// @param gradient  as long as the values
  virtual void apply(std::uint64_t update, std::span<const float> gradient) = 0;
};

/// Makes the update of a part, whose values lie where they are said to as long as it lives, 64-byte aligned.
using MakePartUpdate = std::function<std::unique_ptr<PartUpdate>(const KeyPart& part, std::span<float> values)>;

/// The values become what was pushed.
[[nodiscard]] MakePartUpdate replacing_update();
[[nodiscard]] MakePartUpdate function_update(KeyValueUpdate update);
/// Throws as KeyValueStore::set_updater.
[[nodiscard]] MakePartUpdate optimizer_update(const OptimizerOptions& options, const Schedule& schedule);

}  // namespace ronda
