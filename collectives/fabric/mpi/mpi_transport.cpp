#include <ronda/collectives/fabric/mpi/mpi_transport.hpp>
#include <ronda/core/error.hpp>

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

/// Sends and receives in flight for which memory is reserved; more allocate once.
constexpr std::size_t usually_under_way = 64;

int message_length(std::size_t bytes) {
  if (bytes > longest_message) throw LogicError("a message longer than 1 GiB; algorithms send segments");
  return static_cast<int>(bytes);
}

/// MPI itself reports only messages that are too long, not those that are too short.
void require_length(const MPI_Status& status, std::size_t expected) {
  int bytes = 0;
  mpi::check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  if (static_cast<std::size_t>(bytes) != expected)
    throw CommunicationError("a message of " + std::to_string(bytes) + " bytes has come, expected " +
                             std::to_string(expected) + ": the ranks give different counts or types");
}

}  // namespace

MpiTransport::MpiTransport(MPI_Comm communicator, int rank, Ranks ranks, FabricChannel channel)
    : communicator_(communicator), ranks_(std::move(ranks)), channel_(std::move(channel)) {
  const auto self = std::ranges::find(*ranks_, rank);
  if (self == ranks_->end()) throw LogicError("a transport among ranks of which this one is none");
  rank_ = static_cast<int>(self - ranks_->begin());
  under_way_.reserve(usually_under_way);
}

Request MpiTransport::send(int to, std::span<const std::byte> message) {
  mpi::require_not_over();
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(
      MPI_Isend(message.data(), message_length(message.size()), MPI_BYTE, member(to), tag(), communicator_, &request),
      "MPI_Isend");
  under_way_.push_back({to_id(request), false});
  sent_bytes_ += message.size();
  return {*this, {to_id(request)}, to};
}

Request MpiTransport::receive(int from, std::span<std::byte> message) {
  mpi::require_not_over();
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(
      MPI_Irecv(message.data(), message_length(message.size()), MPI_BYTE, member(from), tag(), communicator_, &request),
      "MPI_Irecv");
  under_way_.push_back({to_id(request), true});
  return {*this, {to_id(request), message.size()}, from};
}

bool MpiTransport::test(Handle& handle) {
  MPI_Request request = to_request(handle.id);
  MPI_Status status;
  int done = 0;
  const int code = MPI_Test(&request, &done, &status);
  if (done == 0 && code == MPI_SUCCESS) return false;
  const auto message = std::ranges::find(under_way_, handle.id, &Message::id);
  if (message != under_way_.end()) {
    *message = under_way_.back();
    under_way_.pop_back();
  }
  mpi::check(code, "MPI_Test");
  if (handle.expected) {
    ++received_;
    require_length(status, *handle.expected);
  }
  return true;
}

Traffic::Open MpiTransport::open() noexcept {
  Open open;
  if (mpi::is_over()) under_way_.clear();
  if (!given_up_) return look();
  std::erase_if(under_way_, [&](const Message& message) {
    MPI_Request request = to_request(message.id);
    MPI_Status status;
    int done = 0, cancelled = 0;
    const bool over = MPI_Test(&request, &done, &status) != MPI_SUCCESS || done != 0;
    if (!over) (message.receives ? open.receives : open.sends) = true;
    if (over && message.receives && MPI_Test_cancelled(&status, &cancelled) == MPI_SUCCESS && cancelled == 0)
      ++received_;
    return over;
  });
  return open;
}

/// Frees no request: the algorithm that waits for the message still has it.
Traffic::Open MpiTransport::look() const noexcept {
  Open open;
  for (const Message& message : under_way_) {
    int done = 0;
    const int code = MPI_Request_get_status(to_request(message.id), &done, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && done == 0) (message.receives ? open.receives : open.sends) = true;
  }
  return open;
}

/// Cancels receives only: MPI cannot take back a send, and a matched send continues.
void MpiTransport::take_back() noexcept {
  given_up_ = true;
  if (mpi::is_over()) return;
  for (const Message& message : under_way_) {
    MPI_Request request = to_request(message.id);
    if (message.receives) MPI_Cancel(&request);
  }
}

}  // namespace ronda
