#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/step/refusals.hpp>

namespace ronda {

void refuse_sparse_gradient(const std::string& parameter, std::string_view strategy) {
  throw InputError("the gradient of " + parameter + " is sparse, and " + setting("strategy", strategy) +
                   " sums whole ones; make the embedding with " + setting("sparse", false) + ", or take " +
                   setting("strategy", "mirrored"));
}

void refuse_update_of_whole(const Optimizer& optimizer, std::string_view strategy, std::string_view why) {
  throw InputError("optimizer " + std::string(optimizer.name()) +
                   " works out an update from whole parameters, and with " + setting("strategy", strategy) + " " +
                   std::string(why) + "; take another optimizer, or " + setting("strategy", "mirrored"));
}

void refuse_other_micro_batches(const std::string& who) {
  throw InputError(who + " take the same micro-batches; take " + setting("shares", "equal"));
}

}  // namespace ronda
