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

}  // namespace ronda
