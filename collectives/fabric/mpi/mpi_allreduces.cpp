#include <ronda/collectives/fabric/mpi/mpi_allreduces.hpp>
#include <ronda/collectives/fabric/mpi/mpi_turn.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace ronda {
namespace {

MPI_Datatype mpi_type(DType dtype) {
  switch (dtype) {
    case DType::float32: return MPI_FLOAT;
    case DType::float64: return MPI_DOUBLE;
    case DType::float16:
    case DType::bfloat16: return MPI_UINT16_T;  // MPI only carries them
    case DType::int8: return MPI_INT8_T;
    case DType::uint8: return MPI_UINT8_T;
    case DType::int32: return MPI_INT32_T;
    case DType::int64: return MPI_INT64_T;
  }
  return MPI_DATATYPE_NULL;
}

/// The function that MPI calls. MPI passes only a handle of the type, so each type has its own function.
template <ReduceOp op, DType dtype>
void combine_for_mpi(void* from, void* into, int* count, MPI_Datatype* /*type*/) {
  combine(op, {static_cast<std::byte*>(into), static_cast<std::size_t>(*count), dtype},
          static_cast<const std::byte*>(from));
}

}  // namespace

MpiOperations::MpiOperations() {
  const auto add = [&]<ReduceOp op, DType... dtypes>() {
    (mpi::check(MPI_Op_create(combine_for_mpi<op, dtypes>, 1, &ours_[{op, dtypes}]), "MPI_Op_create"), ...);
  };
  using enum DType;
  add.operator()<ReduceOp::sum, float16, bfloat16, int8, uint8>();  // Open MPI's sums of 8 bits saturate
  add.operator()<ReduceOp::product, float16, bfloat16>();
  add.operator()<ReduceOp::minimum, float16, bfloat16, float32, float64>();
  add.operator()<ReduceOp::maximum, float16, bfloat16, float32, float64>();
}

MpiOperations::~MpiOperations() {
  if (mpi::is_over()) return;
  for (auto& [key, operation] : ours_) MPI_Op_free(&operation);
}

MPI_Op MpiOperations::operation(ReduceOp op, DType dtype) const {
  if (op == ReduceOp::mean) op = ReduceOp::sum;
  if (const auto ours = ours_.find({op, dtype}); ours != ours_.end()) return ours->second;
  switch (op) {
    case ReduceOp::product: return MPI_PROD;
    case ReduceOp::bitwise_and: return MPI_BAND;
    case ReduceOp::minimum: return MPI_MIN;
    case ReduceOp::maximum: return MPI_MAX;
    default: return MPI_SUM;
  }
}

bool PlainMpi::Call::arrived() noexcept {
  int done = 0;
  code_ = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  return done != 0 || code_ != MPI_SUCCESS;
}

Task PlainMpi::run() {
  constexpr std::size_t most = longest_message / sizeof(double);  // MPI counts with 31 bits
  const Elements copy{copy_.data(), data_.count, data_.dtype};
  if (data_.count > 0) std::memcpy(copy_.data(), data_.data, data_.bytes().size());
  for (std::size_t begin = 0; begin < data_.count; begin += most) {
    const Range range{begin, std::min(data_.count, begin + most)};
    mpi::check(MPI_Iallreduce(MPI_IN_PLACE, copy.part(range).data, static_cast<int>(range.size()),
                              mpi_type(data_.dtype), operation_, communicator_, &call_.request),
               "MPI_Iallreduce");
    co_await call_;
    const Elements piece = data_.part(range);
    std::memcpy(piece.data, copy.part(range).data, piece.bytes().size());
    divide_if_mean(reduction_, piece);
  }
}

/// Another thread may hang inside MPI: then the process ends soon, and the communicator with it.
MpiAllreduces::~MpiAllreduces() {
  const auto turn = MpiTurn::of_process().take_within(std::chrono::milliseconds(100));
  if (turn.owns_lock())
    communicator_ = mpi::Communicator();
  else
    communicator_.leave_behind();
}

std::unique_ptr<Algorithm> MpiAllreduces::make(const Elements& data, const Reduction& reduction) {
  return std::make_unique<PlainMpi>(communicator_.handle(), operations_.operation(reduction.op, data.dtype), data,
                                    reduction);
}

}  // namespace ronda
