#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/step/demands.hpp>

namespace ronda {

void refuse_audits(const Demands& demands, std::string_view strategy, std::string_view why) {
  if (demands.audits)
    throw InputError(".audit_every would find nothing: with .strategy = " + std::string(strategy) + " " +
                     std::string(why) + "; take .strategy = mirrored");
}

void refuse_unequal_shares(const Demands& demands, const std::string& where, std::string_view why) {
  if (demands.unequal_shares)
    throw InputError(".shares = measured gives ranks different micro-batches, and with " + where + " " +
                     std::string(why) + "; take .shares = equal, or .strategy = mirrored");
}

void refuse_all_but_float32_on_processors(const Demands& demands, std::string_view strategy) {
  const std::string where = ".strategy = " + std::string(strategy);
  if (demands.on_gpu)
    throw InputError(".device = cuda: " + where + " computes on processors, not on GPUs; take .strategy = mirrored");
  if (!demands.half_type.empty())
    throw InputError(".precision = " + std::string(demands.half_type) + " is a half type, and " + where +
                     " computes in float32; take .precision = float32, or .strategy = mirrored");
}

}  // namespace ronda
