#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ronda/core/message.hpp>

namespace ronda {

/// A worker's question.
struct Asked {
  int worker = 0;
  std::uint64_t operation = 0;
};

/// Values as they were at a version; never written again.
struct PartValues {
  std::shared_ptr<const float[]> elements;
  std::size_t count = 0;
  std::uint64_t version = 0;
};

/// Takes a server's answers to its workers.
class Answers {
 public:
  virtual void done(const Asked& asked) = 0;
  virtual void dropped(const Asked& asked) = 0;
  virtual void values(const Asked& asked, const PartValues& values) = 0;

 protected:
  ~Answers() = default;
};

/// Bounds the gradients on a server, of all its parts, that wait for a round after the next one. While a worker has
/// more bytes of them than the bound, its pushes get no answer.
class PushesAhead {
 public:
  PushesAhead(Answers& answers, std::size_t bound, std::size_t workers)
      : answers_(answers), bound_(bound), of_(workers) {}

  /// Adds a push that is kept for a later round; answers it, now or later.
  void add(const Asked& push, std::size_t bytes) {
    Worker& worker = of(push.worker);
    worker.bytes += bytes;
    worker.held.push_back(push);
    answer(worker);
  }
  /// Removes an earlier push: the round before its own has ended.
  void remove(int worker, std::size_t bytes) {
    of(worker).bytes -= bytes;
    answer(of(worker));
  }
  /// Removes and returns the pushes that are not answered.
  [[nodiscard]] std::vector<Asked> take_held();
  /// A worker that is not answered, and why; empty if all are.
  [[nodiscard]] Message why_held() const;

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
