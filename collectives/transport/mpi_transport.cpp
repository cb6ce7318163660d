#include <ronda/collectives/transport/mpi_transport.hpp>
#include <ronda/runtime/core/error.hpp>

#include <algorithm>
#include <cstring>
#include <string>

namespace ronda {
namespace {

// An MPI_Request is a pointer in some implementations and a number in others; both fit a Handle's id.
static_assert(sizeof(MPI_Request) <= sizeof(std::uint64_t));

std::uint64_t to_id(MPI_Request request) {
  std::uint64_t id = 0;
  std::memcpy(&id, &request, sizeof request);
  return id;
}

MPI_Request to_request(std::uint64_t id) {
  MPI_Request request = MPI_REQUEST_NULL;
  std::memcpy(&request, &id, sizeof request);
  return request;
}

int message_length(std::size_t bytes) {
  if (bytes > mpi::largest_message) throw LogicError("a message longer than 1 GiB; algorithms send segments");
  return static_cast<int>(bytes);
}

/// MPI itself complains of a message that is too long alone.
void require_length(const MPI_Status& status, std::size_t expected) {
  int bytes = 0;
  mpi::check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  if (static_cast<std::size_t>(bytes) != expected)
    throw CommunicationError("a message of " + std::to_string(bytes) + " bytes has come, expected " +
                             std::to_string(expected) + ": the ranks give different counts or types");
}

}  // namespace

MpiTransport::MpiTransport(const mpi::Communicator& communicator, int rank, Members members, Tag tag)
    : communicator_(communicator.handle()), members_(std::move(members)), tag_(std::move(tag)) {
  const auto self = std::find(members_->begin(), members_->end(), rank);
  if (self == members_->end()) throw LogicError("a transport among ranks of which this one is none");
  rank_ = static_cast<int>(self - members_->begin());
}

Request MpiTransport::send(int to, std::span<const std::byte> message) {
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(MPI_Isend(message.data(), message_length(message.size()), MPI_BYTE, member(to), tag_.value(),
                       communicator_, &request),
             "MPI_Isend");
  return {*this, {to_id(request)}, to};
}

Request MpiTransport::receive(int from, std::span<std::byte> message) {
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(MPI_Irecv(message.data(), message_length(message.size()), MPI_BYTE, member(from), tag_.value(),
                       communicator_, &request),
             "MPI_Irecv");
  return {*this, {to_id(request), message.size()}, from};
}

bool MpiTransport::test(Handle& handle) {
  MPI_Request request = to_request(handle.id);
  MPI_Status status;
  int done = 0;
  const int code = MPI_Test(&request, &done, &status);
  handle.id = to_id(request);
  mpi::check(code, "MPI_Test");
  if (done != 0 && handle.expected) require_length(status, *handle.expected);
  return done != 0;
}

void MpiTransport::abandon(Handle handle) noexcept {
  // Only where a task is given up half way. A receive that matched nothing is taken back, so that MPI does not write
  // into memory that may be gone; whatever else goes wrong here no longer matters.
  int finalized = 0;
  if (MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0) return;
  MPI_Request request = to_request(handle.id);
  if (request == MPI_REQUEST_NULL) return;
  MPI_Cancel(&request);
  MPI_Request_free(&request);
}

}  // namespace ronda
