#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include <ronda/runtime/key_value/detail/answers.hpp>

namespace ronda {

/// The gradients on a server that wait for a round after the next one to end, of all its parts. A worker that has more
/// bytes of them than the bound gets no answer to its pushes until it has fewer.
class PushesAhead {
 public:
  PushesAhead(Answers& answers, std::size_t bound, std::size_t workers)
      : answers_(answers), bound_(bound), of_(workers) {}

  /// A push that is kept for a later round; answers it, now or later.
  void add(const Asked& push, std::size_t bytes) {
    Worker& worker = of(push.worker);
    worker.bytes += bytes;
    worker.held.push_back(push);
    answer(worker);
  }
  /// The round before the one of an earlier push has ended.
  void remove(int worker, std::size_t bytes) {
    of(worker).bytes -= bytes;
    answer(of(worker));
  }
  /// Forgets what is not answered, and returns it.
  [[nodiscard]] std::vector<Asked> take_held();
  /// Which worker is not answered, and why; empty where all are.
  [[nodiscard]] std::string why_held() const;

 private:
  struct Worker {
    std::size_t bytes = 0;
    std::vector<Asked> held = {};
  };
  [[nodiscard]] Worker& of(int worker) { return of_[static_cast<std::size_t>(worker)]; }
  void answer(Worker& worker);

  Answers& answers_;
  std::size_t bound_;
  std::vector<Worker> of_;
};

}  // namespace ronda
