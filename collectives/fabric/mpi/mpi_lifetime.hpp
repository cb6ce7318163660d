#pragma once
#include <exception>
#include <memory>

#include <ronda/collectives/fabric/mpi/mpi.hpp>
#include <ronda/collectives/watch/recorder.hpp>

namespace ronda {

/// MPI, from its initialisation to its end.
class MpiLifetime {
 public:
  /// @param wanted_level  MPI_THREAD_…
  /// @param ledger        records the beginning; its recorder, if it has one, the end
  /// Throws LogicError if MPI is already initialised, and CommunicationError.
  MpiLifetime(int& argc, char**& argv, int wanted_level, Ledger& ledger);
  MpiLifetime(const MpiLifetime&) = delete;
  /// Finalizes MPI, unless it runs because of an exception: that would wait for ranks that no longer come.
  ~MpiLifetime();
  /// Sets a recorder that is known only now.
  void record_end(std::shared_ptr<Recorder> recorder) noexcept { recorder_ = std::move(recorder); }

 private:
  std::shared_ptr<Recorder> recorder_;
  int exceptions_before_ = std::uncaught_exceptions();
};

}  // namespace ronda
