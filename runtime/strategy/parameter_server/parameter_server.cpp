#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/parameter_server/parameter_server.hpp>

#include <string>

namespace ronda {

KeyValueOptions ParameterServer::key_values() const {
  return {.servers = count(),
          .server_ranks = server_ranks,
          .asynchronous = asynchronous,
          .replicas_to_aggregate = replicas_to_aggregate,
          .max_staleness = max_staleness};
}

void check(const ParameterServer& o, const Demands& demands) {
  refuse_audits(demands, ParameterServer::name, "all take the servers' parameters, errors too");
  refuse_unequal_shares(demands, setting("strategy", "parameter_server"), "each worker has an equal part of a step");
  if (o.servers < 1) throw InputError(setting("servers") + " is at least 1, not " + std::to_string(o.servers));
  const Message which = o.servers_beside ? setting("servers_beside") : setting("cluster");
  if (o.servers_beside && !o.cluster.empty())
    throw InputError(setting("servers_beside") + " and " + setting("cluster") +
                     " both say which ranks are servers; give one of them");
  if (o.servers != 1 && (o.servers_beside || !o.cluster.empty()))
    throw InputError(setting("servers") + " counts the last ranks, and " + which +
                     " says which ranks are servers; give one of them");
  if (demands.compression == Compression::automatic)
    throw InputError(setting("compression", "auto") + " chooses for an allreduce, and with " +
                     setting("strategy", "parameter_server") +
                     " workers push to servers; take none, bf16, fp16, int8, int4 or 2bit");
  if (demands.allreduce != AllreduceAlgorithm::automatic)
    throw InputError(setting("allreduce") + " chooses how gradients are summed, and with " +
                     setting("strategy", "parameter_server") + " the servers sum what workers send them; take " +
                     setting("allreduce", "auto"));
  if (demands.exact && o.own_pace())
    throw InputError(setting("exact") + " promises equal bits, and with " + setting("asynchronous") + " or " +
                     setting("replicas_to_aggregate") + " they depend on which worker comes first");
}

}  // namespace ronda
