#include <ronda/collectives/fabric/mpi/mpi.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <array>
#include <numeric>

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

Communicator Communicator::of(const std::vector<int>& ranks) const {
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  MPI_Comm part = MPI_COMM_NULL;
  check(MPI_Comm_group(live(), &all), "MPI_Comm_group");
  check(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some), "MPI_Group_incl");
  check(MPI_Comm_create_group(handle_, some, 0, &part), "MPI_Comm_create_group");
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  return Communicator(part);
}

Communicator Communicator::split_by_node() const {
  MPI_Comm node = MPI_COMM_NULL;
  check(MPI_Comm_split_type(live(), MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  return Communicator(node);
}

std::vector<int> Communicator::allgather(int mine) const {
  std::vector<int> all(static_cast<std::size_t>(size_));
  check(MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, live()), "MPI_Allgather");
  return all;
}

std::vector<std::string> Communicator::allgather_texts(std::string_view mine) const {
  const std::vector<int> lengths = allgather(static_cast<int>(mine.size()));
  std::vector<int> offsets(lengths.size());
  std::exclusive_scan(lengths.begin(), lengths.end(), offsets.begin(), 0);
  std::string all(static_cast<std::size_t>(offsets.back() + lengths.back()), '\0');
  check(MPI_Allgatherv(mine.data(), static_cast<int>(mine.size()), MPI_CHAR, all.data(), lengths.data(), offsets.data(),
                       MPI_CHAR, live()),
        "MPI_Allgatherv");
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank)
    texts.push_back(all.substr(static_cast<std::size_t>(offsets[rank]), static_cast<std::size_t>(lengths[rank])));
  return texts;
}

}  // namespace ronda::mpi
