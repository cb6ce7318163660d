#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/strategy/step/replica_updater.hpp>
#include <ronda/runtime/strategy/step/demands.hpp>

#include <string>

namespace ronda {

std::unique_ptr<Updater> make_updater(const MirroredOptions& options, Replica& replica, Optimizer& optimizer,
                                      const Schedule& schedule, SumOverParts* parts,
                                      const std::optional<ArenaRange>& sums) {
  refuse_both_clips(options.clip_norm, options.clip_value);
  if (!(options.ema_decay >= 0 && options.ema_decay < 1))
    throw InputError(setting("ema_decay") + " is a number from 0 on and below 1, not " + shortest(options.ema_decay));
  const OptimizerBindings bindings = replica.bindings(options.group_of);
  optimizer.bind(bindings);
  return options.platform.make_updater(*replica.device().context, optimizer, bindings, replica.layer_arenas(),
                                       replica.plan().elements(),
                                       {.schedule = schedule,
                                        .loss_scale = replica.loss_scale(),
                                        .clip_norm = options.clip_norm,
                                        .clip_value = options.clip_value,
                                        .check_gradients = options.check_gradients,
                                        .average = reinterpret_cast<float*>(replica.average().data()),
                                        .average_decay = options.ema_decay,
                                        .averaged = replica.written(),
                                        .more_scale = replica.more_scale(),
                                        .parts = parts,
                                        .sums = sums},
                                       replica.stream());
}

StepQueueOptions queue_options(const MirroredOptions& options) {
  return {.fields = options.shape.fields,
          .rows = options.shape.batch_capacity,
          .micro_batches = options.shape.micro_batches,
          .in_flight = options.steps_in_flight,
          .record = options.record_steps};
}

}  // namespace ronda
