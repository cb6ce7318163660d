// The measuring: allreduces of one size in all ways that were asked for, in turns, so that what disturbs disturbs all.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/reduce_op.hpp>
#include <ronda/collectives/world.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>

#include "allreduce_bench/options.hpp"
#include "allreduce_bench/result.hpp"

namespace ronda::apps {

/// Has the memory for the largest size, and a GPU where one was asked for. The constructor and `measure` are
/// collective.
class Bench {
 public:
  /// @param options  outlive it
  Bench(World& world, const BenchOptions& options);

  /// What was done in another way than it was asked for, a line each; once. Not collective.
  [[nodiscard]] std::vector<Message> notes() { return communicator_.take_notes(); }

  /// The ranks of a node share the memory that is reduced in.
  [[nodiscard]] bool shares_memory() const noexcept { return shares_memory_; }

  /// Each of `ways`, and MPI's where it was asked for, in turns.
  [[nodiscard]] std::vector<Result> measure(std::size_t bytes, const std::vector<Way>& ways);

 private:
  struct Contender {
    Result result;
    std::unique_ptr<Collective> plan;  ///< null: MPI's
    std::function<void()> allreduce;
    Buffer* memory = nullptr;  ///< the memory that is reduced
    std::size_t bytes = 0;     ///< its size
    int repetitions = 1;
    std::vector<double> times;  ///< microseconds
  };

  Contender ours(std::size_t count, const Way& way);
  Contender plain_mpi(std::size_t bytes);
  void warm_up(Contender& contender, std::size_t bytes);
  void take_turns(const std::vector<Contender*>& contenders);
  [[nodiscard]] bool enough(int rounds, double spent) const;
  double take_turn(Contender& contender);
  [[nodiscard]] std::vector<double> time_rewritten(Contender& contender, int count);
  void rewrite(Contender& contender);
  [[nodiscard]] double summary(const std::vector<double>& times) const;
  void copy(const void* from, void* to, std::size_t bytes);

  Communicator communicator_;
  const BenchOptions& options_;
  DType dtype_;
  ReduceOp op_;
  std::shared_ptr<DeviceContext> gpu_;  ///< null: the CPU
  Buffer memory_;
  bool shares_memory_;
  Buffer plain_;  ///< for MPI's allreduce, and the host's side of a GPU's
};

}  // namespace ronda::apps
