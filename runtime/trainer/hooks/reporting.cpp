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
  waited.resize(waited.size() - static_cast<std::size_t>(servers_of(run.options())));  // these wait for all workers
  run.sink().on_detail(describe_waits(waited, report.seconds, all.topology().hosts));
  const auto silent = report.epoch == 1 ? run.world().out_of_reach() : std::vector<int>();
  if (!silent.empty())
    run.sink().on_detail("datagrams do not get through from rank " + std::to_string(silent.front()) + " and " +
                         std::to_string(silent.size() - 1) +
                         " more: when the job stands still, nothing will be known of them but that they are silent");
}

}  // namespace ronda
