#include <ronda/collectives/nccl/nccl_library.hpp>
#include <ronda/core/cuda/stream.hpp>

#include <nccl.h>

#include <algorithm>
#include <string>

namespace ronda::nccl {
namespace {

static_assert(sizeof(UniqueId) == NCCL_UNIQUE_ID_BYTES);

ncclComm_t native(Comm comm) { return reinterpret_cast<ncclComm_t>(comm); }

Answer answer(ncclResult_t result, Comm comm = nullptr) {
  if (result == ncclSuccess) return {};
  if (result == ncclInProgress) return {Status::in_progress};
  std::string text = ncclGetErrorString(result);
  if (const char* last = ncclGetLastError(native(comm)); last != nullptr && *last != '\0')
    text += std::string(", ") + last;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return {result == ncclRemoteError ? Status::remote_error : Status::failed, text};
}

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float32: return ncclFloat32;
    case DType::float64: return ncclFloat64;
    case DType::float16: return ncclFloat16;
    case DType::bfloat16: return ncclBfloat16;
    case DType::int8: return ncclInt8;
    case DType::uint8: return ncclUint8;
    case DType::int32: return ncclInt32;
    case DType::int64: return ncclInt64;
  }
  return ncclNumTypes;
}

/// A mean is NCCL's own, which rules out some of its fastest ways: gradients are summed, and divided by the optimizer.
ncclRedOp_t operation(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return ncclSum;
    case ReduceOp::mean: return ncclAvg;
    case ReduceOp::minimum: return ncclMin;
    case ReduceOp::maximum: return ncclMax;
    case ReduceOp::product: return ncclProd;
    case ReduceOp::bitwise_and: break;
  }
  return ncclNumOps;
}

class BuiltIn final : public Library {
 public:
  [[nodiscard]] std::string version() const override {
    int code = 0;
    ncclGetVersion(&code);
    return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." + std::to_string(code % 100);
  }

  Answer make_unique_id(UniqueId& id) override {
    ncclUniqueId made{};
    const Answer result = answer(ncclGetUniqueId(&made));
    std::copy(std::begin(made.internal), std::end(made.internal), id.begin());
    return result;
  }

  Answer init(Comm& comm, int ranks, const UniqueId& id, int rank) override {
    ncclUniqueId given{};
    std::copy(id.begin(), id.end(), std::begin(given.internal));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    // NCCL writes the place once more when it is done, from a thread of its own: it must be the caller's.
    return answer(ncclCommInitRankConfig(reinterpret_cast<ncclComm_t*>(&comm), ranks, given, rank, &config));
  }

  Answer state(Comm comm) override {
    ncclResult_t found = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(native(comm), &found);
    return answer(asked == ncclSuccess ? found : asked, comm);
  }

  void abort(Comm comm) noexcept override { ncclCommAbort(native(comm)); }

  Answer allocate(void** memory, std::size_t bytes) override { return answer(ncclMemAlloc(memory, bytes)); }
  void free(void* memory) noexcept override { ncclMemFree(memory); }

  Answer open_window(Comm comm, void* memory, std::size_t bytes, Window& window) override {
    return answer(ncclCommWindowRegister(native(comm), memory, bytes, reinterpret_cast<ncclWindow_t*>(&window),
                                         NCCL_WIN_COLL_SYMMETRIC),
                  comm);
  }
  void close_window(Comm comm, Window window) noexcept override {
    ncclCommWindowDeregister(native(comm), reinterpret_cast<ncclWindow_t>(window));
  }

  Answer group_start() override { return answer(ncclGroupStart()); }
  Answer group_end() override { return answer(ncclGroupEnd()); }

  Answer all_reduce(Comm comm, std::byte* data, std::size_t count, DType dtype, ReduceOp op, Stream& stream) override {
    return answer(
        ncclAllReduce(data, data, count, type_of(dtype), operation(op), native(comm), cuda::handle_of(stream)), comm);
  }
  Answer broadcast(Comm comm, std::byte* data, std::size_t count, DType dtype, int root, Stream& stream) override {
    return answer(ncclBroadcast(data, data, count, type_of(dtype), root, native(comm), cuda::handle_of(stream)), comm);
  }
  Answer reduce(Comm comm, std::byte* data, std::size_t count, DType dtype, ReduceOp op, int root,
                Stream& stream) override {
    return answer(
        ncclReduce(data, data, count, type_of(dtype), operation(op), root, native(comm), cuda::handle_of(stream)),
        comm);
  }
  Answer all_gather(Comm comm, std::byte* all, std::size_t count, DType dtype, int rank, Stream& stream) override {
    return answer(
        ncclAllGather(part(all, count, dtype, rank), all, count, type_of(dtype), native(comm), cuda::handle_of(stream)),
        comm);
  }
  Answer reduce_scatter(Comm comm, std::byte* all, std::size_t count, DType dtype, ReduceOp op, int rank,
                        Stream& stream) override {
    return answer(ncclReduceScatter(all, part(all, count, dtype, rank), count, type_of(dtype), operation(op),
                                    native(comm), cuda::handle_of(stream)),
                  comm);
  }

 private:
  static std::byte* part(std::byte* all, std::size_t count, DType dtype, int rank) {
    return all + static_cast<std::size_t>(rank) * count * size_of(dtype);
  }
};

}  // namespace

std::shared_ptr<Library> built_in_library() { return std::make_shared<BuiltIn>(); }

}  // namespace ronda::nccl
