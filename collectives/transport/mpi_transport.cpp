#include <ronda/collectives/transport/mpi_transport.hpp>
#include <ronda/runtime/core/error.hpp>

#include <algorithm>
#include <cstring>

namespace ronda {
namespace {

// An MPI_Request is a pointer in some implementations and a number in others; both fit a Handle.
static_assert(sizeof(MPI_Request) <= sizeof(std::uint64_t));

std::uint64_t to_handle(MPI_Request request) {
  std::uint64_t handle = 0;
  std::memcpy(&handle, &request, sizeof request);
  return handle;
}

MPI_Request to_request(std::uint64_t handle) {
  MPI_Request request = MPI_REQUEST_NULL;
  std::memcpy(&request, &handle, sizeof request);
  return request;
}

int message_length(std::size_t bytes) {
  if (bytes > mpi::largest_message) throw LogicError("a message longer than 1 GiB; algorithms send segments");
  return static_cast<int>(bytes);
}

}  // namespace

MpiTransport::MpiTransport(const mpi::Communicator& communicator, std::vector<int> members, int tag)
    : communicator_(communicator.handle()), members_(std::move(members)), tag_(tag) {
  const auto self = std::find(members_.begin(), members_.end(), communicator.rank());
  if (self == members_.end()) throw LogicError("a transport among ranks of which this one is none");
  rank_ = static_cast<int>(self - members_.begin());
}

Request MpiTransport::send(int to, std::span<const std::byte> message) {
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(
      MPI_Isend(message.data(), message_length(message.size()), MPI_BYTE, member(to), tag_, communicator_, &request),
      "MPI_Isend");
  return {*this, to_handle(request), to};
}

Request MpiTransport::receive(int from, std::span<std::byte> message) {
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(
      MPI_Irecv(message.data(), message_length(message.size()), MPI_BYTE, member(from), tag_, communicator_, &request),
      "MPI_Irecv");
  return {*this, to_handle(request), from};
}

bool MpiTransport::test(Handle& handle) {
  MPI_Request request = to_request(handle);
  int done = 0;
  const int code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  handle = to_handle(request);
  mpi::check(code, "MPI_Test");
  return done != 0;
}

void MpiTransport::abandon(Handle handle) noexcept {
  // Only where a task is given up half way. A receive that matched nothing is taken back, so that MPI does not write
  // into memory that may be gone; whatever else goes wrong here no longer matters.
  int finalized = 0;
  if (MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0) return;
  MPI_Request request = to_request(handle);
  if (request == MPI_REQUEST_NULL) return;
  MPI_Cancel(&request);
  MPI_Request_free(&request);
}

}  // namespace ronda
