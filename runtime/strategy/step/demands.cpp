#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/step/demands.hpp>

namespace ronda {

void refuse_audits(const Demands& demands, std::string_view strategy, std::string_view why) {
  if (demands.audits)
    throw InputError(setting("audit_every") + " would find nothing: with " + setting("strategy", strategy) + " " +
                     std::string(why) + "; take " + setting("strategy", "mirrored"));
}

void refuse_unequal_shares(const Demands& demands, const Message& where, std::string_view why) {
  if (demands.unequal_shares)
    throw InputError(setting("shares", "measured") + " gives ranks different micro-batches, and with " + where + " " +
                     std::string(why) + "; take " + setting("shares", "equal") + ", or " +
                     setting("strategy", "mirrored"));
}

void refuse_all_but_float32_on_processors(const Demands& demands, std::string_view strategy) {
  const Message where = setting("strategy", strategy);
  if (demands.on_gpu)
    throw InputError(setting("device", "cuda") + ": " + where + " computes on processors, not on GPUs; take " +
                     setting("strategy", "mirrored"));
  if (!demands.half_type.empty())
    throw InputError(setting("precision", demands.half_type) + " is a half type, and " + where +
                     " computes in float32; take " + setting("precision", "float32") + ", or " +
                     setting("strategy", "mirrored"));
}

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

void refuse_other_micro_batches(const std::string& ranks) {
  throw InputError(ranks + " take the same micro-batches; take " + setting("shares", "equal"));
}

}  // namespace ronda
