#include <ronda/runtime/strategy/sharded/sharded.hpp>
#include <ronda/core/message.hpp>

namespace ronda {

void check(const Sharded& options, const Demands& demands) {
  refuse_audits(demands, Sharded::name, "a rank's update is written to all others, an error in it too");
  if (options.shard_gradients)
    refuse_unequal_shares(demands, setting("shard_gradients"), "ranks sum the gradients of each micro-batch together");
}

}  // namespace ronda
