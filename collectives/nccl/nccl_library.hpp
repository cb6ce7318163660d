#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <ronda/collectives/reduce_op.hpp>
#include <ronda/core/dtype.hpp>
#include <ronda/core/stream.hpp>

namespace ronda::nccl {

/// What a call of NCCL answers.
enum class Status : std::uint8_t {
  success,
  in_progress,   ///< begun; `state` tells when it is over
  remote_error,  ///< another rank has failed or is gone
  failed,
};
struct Answer {
  Status status = Status::success;
  std::string text = {};  ///< NCCL's words; empty for a success
};

/// How ranks find one another.
using UniqueId = std::array<char, 128>;
/// NCCL's own objects; null: none.
using Comm = struct OpaqueComm*;
using Window = struct OpaqueWindow*;

/// NCCL's calls as they are used here, one for one, so that a stand-in can take their place where there is no GPU.
/// Communicators do not block: what would wait for other ranks answers `in_progress`, and what it gives (a
/// communicator, a window) must stay where it is until it is over. One thread at a time uses a communicator; it is of
/// the GPU that the thread which calls `init` uses.
class Library {
 public:
  Library() = default;
  Library(const Library&) = delete;
  virtual ~Library() = default;

  [[nodiscard]] virtual std::string version() const = 0;  ///< `2.28.9`

  virtual Answer make_unique_id(UniqueId& id) = 0;                               // ncclGetUniqueId
  virtual Answer init(Comm& comm, int ranks, const UniqueId& id, int rank) = 0;  // ncclCommInitRankConfig, blocking=0
  virtual Answer state(Comm comm) = 0;                                           // ncclCommGetAsyncError
  virtual void abort(Comm comm) noexcept = 0;  // ncclCommAbort: not collective; ends what is in flight, and frees it

  virtual Answer allocate(void** memory, std::size_t bytes) = 0;  // ncclMemAlloc
  virtual void free(void* memory) noexcept = 0;                   // ncclMemFree
  /// Collective. `failed` where this NCCL has no windows.
  virtual Answer open_window(Comm comm, void* memory, std::size_t bytes, Window& window) = 0;
  virtual void close_window(Comm comm, Window window) noexcept = 0;

  // Queued on `stream`. Between `group_start` and `group_end` only remembered, and then queued as one.
  virtual Answer group_start() = 0;
  virtual Answer group_end() = 0;
  virtual Answer all_reduce(Comm comm, std::byte* data, std::size_t count, DType dtype, ReduceOp op,
                            Stream& stream) = 0;
  virtual Answer broadcast(Comm comm, std::byte* data, std::size_t count, DType dtype, int root, Stream& stream) = 0;
  virtual Answer reduce(Comm comm, std::byte* data, std::size_t count, DType dtype, ReduceOp op, int root,
                        Stream& stream) = 0;
  /// In place: rank r's `count` elements are at r · count of `all`.
  virtual Answer all_gather(Comm comm, std::byte* all, std::size_t count, DType dtype, int rank, Stream& stream) = 0;
  virtual Answer reduce_scatter(Comm comm, std::byte* all, std::size_t count, DType dtype, ReduceOp op, int rank,
                                Stream& stream) = 0;
};

/// What this program was built with; null: nothing.
[[nodiscard]] std::shared_ptr<Library> built_in_library();

}  // namespace ronda::nccl
