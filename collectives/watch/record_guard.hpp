#pragma once
#include <cstddef>

namespace ronda {

/// Keeps a process alive whose record is cut off. The file is mapped, and whoever may write to it may make it shorter;
/// the next store to what is gone is a SIGBUS. Under this guard plain memory takes the place of each such page, and the
/// process goes on without a record.
///
/// The first one installs a handler of SIGBUS for good; what it does not know goes to the handler before it. Up to 64
/// guards are in force at a time.
class RecordGuard {
 public:
  RecordGuard(void* memory, std::size_t bytes) noexcept;
  RecordGuard(const RecordGuard&) = delete;
  ~RecordGuard();

 private:
  void* memory_;
};

}  // namespace ronda
