#include <ronda/collectives/host/transport/mpi.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace ronda::mpi {

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  throw CommunicationError(std::string(call) +
                           " failed: " + std::string(text.data(), static_cast<std::size_t>(length)));
}

std::string library_name() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  std::string name = text.data();
  name.resize(std::min(name.size(), name.find_first_of(",\n")));
  std::replace(name.begin(), name.end(), '\t', ' ');
  return name;
}

bool is_over() noexcept {
  int finalized = 0;
  return MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0;
}

void require_not_over() {
  if (is_over())
    throw LogicError(
        "MPI is finalized already: the program has called MPI_Finalize while a World was in use; leave that call to "
        "the "
        "World, or, where the program has initialised MPI itself, destroy the World first");
}

Communicator::Communicator(MPI_Comm handle) : handle_(handle) {
  check(MPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(handle_, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(handle_, &size_), "MPI_Comm_size");
}

MPI_Comm Communicator::live() const {
  require_not_over();
  return handle_;
}

Communicator::~Communicator() {
  // An object that outlives MPI has nothing left to free. MPI_Comm_free is collective by the letter, but
  // implementations only count references down; no rank waits in it.
  if (handle_ != MPI_COMM_NULL && !is_over()) MPI_Comm_free(&handle_);
}

Communicator Communicator::duplicate(MPI_Comm original) {
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_dup(original, &copy), "MPI_Comm_dup");
  return Communicator(copy);
}

Communicator Communicator::split(int color, int key) const {
  MPI_Comm part = MPI_COMM_NULL;
  check(MPI_Comm_split(live(), color, key, &part), "MPI_Comm_split");
  return Communicator(part);
}

Communicator Communicator::split_by_node() const {
  MPI_Comm node = MPI_COMM_NULL;
  check(MPI_Comm_split_type(live(), MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  return Communicator(node);
}

void Communicator::barrier() const {
  if (gatherer_ != nullptr) return gatherer_->gather({}, {}, std::vector<std::size_t>(static_cast<std::size_t>(size_)));
  check(MPI_Barrier(live()), "MPI_Barrier");
}

void Communicator::broadcast(std::span<std::byte> bytes, int root) const {
  if (gatherer_ != nullptr) {
    std::vector<std::size_t> of_rank(static_cast<std::size_t>(size_));
    of_rank[static_cast<std::size_t>(root)] = bytes.size();
    return gatherer_->gather(rank_ == root ? bytes : std::span<std::byte>(), bytes, of_rank);
  }
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), largest_message));
    check(MPI_Bcast(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, root, live()), "MPI_Bcast");
    bytes = bytes.subspan(piece.size());
  }
}

bool Communicator::all(bool mine) const {
  const auto everybody = allgather(static_cast<char>(mine));
  return std::ranges::all_of(everybody, [](char one) { return one != 0; });
}

void Communicator::allgather_bytes(const void* mine, void* all, std::size_t bytes) const {
  if (bytes > largest_message) throw LogicError("too many bytes for one gathering of setting-up data");
  const auto ranks = static_cast<std::size_t>(size_);
  if (gatherer_ != nullptr)
    return gatherer_->gather({static_cast<const std::byte*>(mine), bytes},
                             {static_cast<std::byte*>(all), bytes * ranks}, std::vector<std::size_t>(ranks, bytes));
  const int count = static_cast<int>(bytes);
  check(MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, live()), "MPI_Allgather");
}

void Communicator::alltoall_bytes(const void* mine, void* all, std::size_t bytes) const {
  const int count = static_cast<int>(bytes);
  check(MPI_Alltoall(mine, count, MPI_BYTE, all, count, MPI_BYTE, live()), "MPI_Alltoall");
}

void Communicator::add(std::span<std::uint16_t> numbers) const {
  check(MPI_Allreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()), MPI_UINT16_T, MPI_SUM, live()),
        "MPI_Allreduce");
}

void Communicator::combine_bits(std::span<std::byte> bits) const {
  if (bits.size() > largest_message) throw LogicError("too many bytes for one combining of setting-up data");
  check(MPI_Allreduce(MPI_IN_PLACE, bits.data(), static_cast<int>(bits.size()), MPI_BYTE, MPI_BOR, live()),
        "MPI_Allreduce");
}

std::vector<std::string> Communicator::allgather_texts(std::string_view mine) const {
  const auto lengths = allgather(static_cast<std::uint64_t>(mine.size()));
  std::uint64_t total = 0;
  std::vector<int> counts, offsets;
  for (const std::uint64_t length : lengths) {
    counts.push_back(static_cast<int>(length));
    offsets.push_back(static_cast<int>(total));
    total += length;
    if (total > static_cast<std::uint64_t>(std::numeric_limits<int>::max()))  // every rank sees the same lengths
      throw LogicError("the ranks' texts are longer than 2 GiB together; gather data as tensors");
  }
  std::string all(total, '\0');
  if (gatherer_ != nullptr)
    gatherer_->gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                      {lengths.begin(), lengths.end()});
  else
    check(MPI_Allgatherv(mine.data(), static_cast<int>(mine.size()), MPI_CHAR, all.data(), counts.data(),
                         offsets.data(), MPI_CHAR, live()),
          "MPI_Allgatherv");
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank)
    texts.push_back(all.substr(static_cast<std::size_t>(offsets[rank]), lengths[rank]));
  return texts;
}

}  // namespace ronda::mpi
