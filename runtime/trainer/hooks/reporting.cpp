#include <ronda/runtime/trainer/hooks/reporting.hpp>
#include <ronda/runtime/trainer/slow_ranks.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

#include <string>
#include <vector>

namespace ronda {

void Reporting::after_epoch(TrainingRun& run, const EpochReport& report) {
  run.sink().on_epoch(report);
  Communicator all = run.world().communicator();
  if (all.size() == 1) return;
  double mine = report.times.communication;
  std::vector<double> waited(static_cast<std::size_t>(all.size()));
  all.allgather(Tensor(std::span(&mine, 1)), Tensor(std::span(waited)));
  std::vector<int> workers;  // servers wait for all of these
  if (const auto* servers = run.options().strategy.as<ParameterServer>()) {
    const Roles roles = servers->roles(all.size());
    for (int i = 0; i < roles.workers(); ++i) {
      workers.push_back(roles.rank_of_worker(i));
      waited[static_cast<std::size_t>(i)] = waited[static_cast<std::size_t>(workers.back())];
    }
    waited.resize(workers.size());
  }
  run.sink().on_detail(describe_waits(waited, report.seconds, all.topology().hosts, workers));
  const auto silent = report.epoch == 1 ? run.world().out_of_reach() : std::vector<int>();
  if (!silent.empty())
    run.sink().on_detail("datagrams do not get through from rank " + std::to_string(silent.front()) + " and " +
                         std::to_string(silent.size() - 1) +
                         " more: when the job stands still, nothing will be known of them but that they are silent");
}

}  // namespace ronda
