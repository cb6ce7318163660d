// ronda.h, handed on to a Coordinator. Every function catches what is thrown, and keeps its text for the thread.
#include <mpi.h>

#include <ronda/collectives/mpi_world.hpp>
#include <ronda/coordinator/coordinator.hpp>
#include <ronda/core/error.hpp>
#include <ronda/ronda.h>

#include <ronda/bindings/c/guarded.hpp>
#include <ronda/bindings/c/world_keeper.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

struct ronda_group {
  std::unique_ptr<ronda::WorldKeeper> keeper;  // of the first group, with its coordinator
  std::optional<ronda::Coordinator> part;      // of a split

  [[nodiscard]] ronda::Coordinator& coordinator() { return keeper != nullptr ? keeper->coordinator() : *part; }
  [[nodiscard]] const ronda::Coordinator& coordinator() const {
    return keeper != nullptr ? keeper->coordinator() : *part;
  }
};

struct ronda_request {
  ronda::Ticket ticket;
};

namespace {

using ronda::Coordinator;
using ronda::DType;
using ronda::given;
using ronda::guarded;
using ronda::InputError;
using ronda::ReduceOp;
using ronda::Tensor;
using ronda::Ticket;

DType to_dtype(ronda_dtype dtype) {
  switch (dtype) {
    case RONDA_FLOAT32: return DType::float32;
    case RONDA_FLOAT64: return DType::float64;
    case RONDA_INT32: return DType::int32;
    case RONDA_UINT8: return DType::uint8;
    case RONDA_FLOAT16: return DType::float16;
    case RONDA_BFLOAT16: return DType::bfloat16;
    case RONDA_INT8: return DType::int8;
    case RONDA_INT64: return DType::int64;
  }
  throw InputError(std::to_string(static_cast<int>(dtype)) + " is no ronda_dtype");
}

ReduceOp to_op(ronda_op op) {
  switch (op) {
    case RONDA_SUM: return ReduceOp::sum;
    case RONDA_MEAN: return ReduceOp::mean;
    case RONDA_MIN: return ReduceOp::minimum;
    case RONDA_MAX: return ReduceOp::maximum;
    case RONDA_PRODUCT: return ReduceOp::product;
    case RONDA_AND: return ReduceOp::bitwise_and;
  }
  throw InputError(std::to_string(static_cast<int>(op)) + " is no ronda_op");
}

/// @param times  so many `count` elements
Tensor to_tensor(void* data, std::size_t count, ronda_dtype dtype, int times = 1) {
  if (count > 0) static_cast<void>(given(static_cast<char*>(data), "data"));
  if (count > static_cast<std::size_t>(ronda::Shape::most_elements / times))
    throw InputError(std::to_string(count) + " elements" + (times > 1 ? " of each rank" : "") +
                     " are more than memory can have");
  return {{ronda::Shape{static_cast<std::int64_t>(count) * times}, to_dtype(dtype), {}}, data};
}

/// What it is called, or else what it is: `sum of float32 (3)`.
std::string name_or(const char* name, const std::string& what, const Tensor& tensor) {
  if (name != nullptr) return name;
  return what + " of " + std::string(ronda::name_of(tensor.dtype())) + " " + tensor.shape().text();
}

/// Converts a call's arguments by `make`. If it throws, the call with this name has failed on this rank.
template <class Make>
auto checked(ronda_group* group, const char* name, const Make& make) {
  try {
    return make();
  } catch (const ronda::Error&) {
    if (group != nullptr && name != nullptr) group->coordinator().note_failed(name);
    throw;
  }
}

Ticket allreduce(ronda_group* group, const char* name, void* data, std::size_t count, ronda_dtype dtype, ronda_op op) {
  const auto [tensor, wanted] =
      checked(group, name, [&] { return std::pair(to_tensor(data, count, dtype), to_op(op)); });
  return given(group, "the group")
      .coordinator()
      .allreduce(name_or(name, std::string(ronda::name_of(wanted)), tensor), tensor, wanted);
}

Ticket broadcast(ronda_group* group, const char* name, void* data, std::size_t count, ronda_dtype dtype, int root) {
  const Tensor tensor = checked(group, name, [&] { return to_tensor(data, count, dtype); });
  return given(group, "the group")
      .coordinator()
      .broadcast(name_or(name, "broadcast from " + std::to_string(root), tensor), tensor, root);
}

/// `*request` becomes what waits for the ticket that `submit` gives; null where that throws.
template <class Submit>
void begin(ronda_request** request, const Submit& submit) {
  given(request, "request") = nullptr;
  auto made = std::make_unique<ronda_request>();
  made->ticket = submit();
  *request = made.release();
}

ronda_options default_options() {
  const ronda::CoordinatorOptions coordinator;
  ronda_options options{};
  options.size = sizeof(ronda_options);
  options.communication_timeout = ronda::WorldOptions().communication_timeout;
  options.missing_warning = coordinator.missing_warning;
  options.missing_limit = coordinator.missing_limit;
  options.gather_seconds = -1;
  return options;
}

void require_known_size(std::size_t size) {
  if (size < sizeof(std::size_t) || size > sizeof(ronda_options))
    throw InputError("options have a size of " + std::to_string(size) + ", expected " +
                     std::to_string(sizeof(std::size_t)) + " to " + std::to_string(sizeof(ronda_options)) +
                     ": give ronda_default_options their sizeof first, and the library this header's version");
}

ronda::WorldOptions world_options(const ronda_options& options) {
  ronda::WorldOptions result;
  result.any_thread = true;
  result.communication_timeout = options.communication_timeout;
  return result;
}

ronda::CoordinatorOptions coordinator_options(const ronda_options& options) {
  ronda::CoordinatorOptions result;
  if (options.batch_bytes != 0) result.batch_bytes = options.batch_bytes;
  if (!(options.gather_seconds < 0)) result.gather_seconds = options.gather_seconds;
  result.missing_warning = options.missing_warning;
  result.missing_limit = options.missing_limit;
  result.print_warnings = options.print_warnings != 0;
  if (options.on_warning != nullptr)
    result.on_warning = [call = options.on_warning, context = options.context](const std::string& text) {
      call(text.c_str(), context);
    };
  return result;
}

/// The caller's options, of which an older program may have fewer.
ronda_options complete(const ronda_options* given_options) {
  ronda_options options = default_options();
  if (given_options == nullptr) return options;
  require_known_size(given_options->size);
  std::memcpy(&options, given_options, given_options->size);
  require_sense(coordinator_options(options));  // before MPI starts, which cannot start again
  return options;
}

/// @param make  the world
ronda_group* open(const ronda::WorldKeeper::Make& make, const ronda_options& options) {
  auto keeper = std::make_unique<ronda::WorldKeeper>(make, world_options(options), coordinator_options(options));
  return std::make_unique<ronda_group>(ronda_group{std::move(keeper), {}}).release();
}

/// Freed in any case.
void close(ronda_group* group) {
  const std::unique_ptr<ronda_group> owned(group);
  if (owned->keeper != nullptr)
    owned->keeper->close();
  else
    owned->part->close();
}

}  // namespace

int ronda_abi_version(void) { return RONDA_ABI_VERSION; }
const char* ronda_version(void) { return RONDA_VERSION; }

size_t ronda_last_error(char* text, size_t size) {
  const std::string& error = ronda::last_error();
  if (text != nullptr && size > 0) {
    const std::size_t length = std::min(size - 1, error.size());
    std::memcpy(text, error.data(), length);
    text[length] = '\0';
  }
  return error.size();
}

ronda_status ronda_default_options(ronda_options* options, size_t size) {
  return guarded([&] {
    require_known_size(size);
    ronda_options defaults = default_options();
    defaults.size = size;
    std::memcpy(&given(options, "options"), &defaults, size);
  });
}

ronda_status ronda_init(const ronda_options* options, ronda_group** world) {
  return guarded([&] {
    static_cast<void>(given(world, "world"));
    const ronda_options complete_options = complete(options);
    const auto make = [](const ronda::WorldOptions& world_options) {
      int argc = 0;
      char** argv = nullptr;
      return ronda::World(argc, argv, world_options);
    };
    *world = open(make, complete_options);
  });
}

ronda_status ronda_init_comm(int communicator, const ronda_options* options, ronda_group** world) {
  return guarded([&] {
    static_cast<void>(given(world, "world"));
    const ronda_options complete_options = complete(options);
    ronda::require_mpi();  // or the handle's conversion ends the process
    const auto make = [communicator](const ronda::WorldOptions& world_options) {
      return ronda::World::adopt(MPI_Comm_f2c(communicator), world_options);
    };
    *world = open(make, complete_options);
  });
}

ronda_status ronda_finalize(ronda_group* world) {
  return guarded([&] {
    if (given(world, "world").keeper == nullptr)
      throw ronda::LogicError("ronda_finalize is for the first group; take ronda_close");
    close(world);
  });
}

ronda_status ronda_rank(const ronda_group* group, int* rank) {
  return guarded([&] { given(rank, "rank") = given(group, "the group").coordinator().rank(); });
}

ronda_status ronda_size(const ronda_group* group, int* size) {
  return guarded([&] { given(size, "size") = given(group, "the group").coordinator().size(); });
}

ronda_status ronda_allreduce(ronda_group* group, const char* name, void* data, size_t count, ronda_dtype dtype,
                             ronda_op op) {
  return guarded([&] { allreduce(group, name, data, count, dtype, op).wait(); });
}

ronda_status ronda_broadcast(ronda_group* group, const char* name, void* data, size_t count, ronda_dtype dtype,
                             int root) {
  return guarded([&] { broadcast(group, name, data, count, dtype, root).wait(); });
}

ronda_status ronda_allgather(ronda_group* group, const char* name, const void* mine, void* all, size_t count,
                             ronda_dtype dtype) {
  return guarded([&] {
    Coordinator& coordinator = given(group, "the group").coordinator();
    const auto [part, whole] = checked(group, name, [&] {
      return std::pair(to_tensor(const_cast<void*>(mine), count, dtype),
                       to_tensor(all, count, dtype, coordinator.size()));
    });
    coordinator.allgather(name_or(name, "allgather", part), part, whole).wait();
  });
}

ronda_status ronda_barrier(ronda_group* group, const char* name) {
  return guarded([&] { given(group, "the group").coordinator().barrier(name == nullptr ? "barrier" : name).wait(); });
}

ronda_status ronda_allreduce_async(ronda_group* group, const char* name, void* data, size_t count, ronda_dtype dtype,
                                   ronda_op op, ronda_request** request) {
  return guarded([&] { begin(request, [&] { return allreduce(group, name, data, count, dtype, op); }); });
}

ronda_status ronda_broadcast_async(ronda_group* group, const char* name, void* data, size_t count, ronda_dtype dtype,
                                   int root, ronda_request** request) {
  return guarded([&] { begin(request, [&] { return broadcast(group, name, data, count, dtype, root); }); });
}

ronda_status ronda_allreduce_together(ronda_group* group, const char* name, const ronda_tensor* tensors,
                                      size_t tensor_count, ronda_op op, ronda_request** request) {
  return guarded([&] {
    begin(request, [&] {
      if (tensor_count > 0) static_cast<void>(given(tensors, "tensors"));
      std::vector<Tensor> views;
      for (std::size_t i = 0; i < tensor_count; ++i)
        views.push_back(to_tensor(tensors[i].data, tensors[i].count, tensors[i].dtype));
      return given(group, "the group").coordinator().allreduce(&given(name, "name"), views, to_op(op));
    });
  });
}

ronda_status ronda_test(const ronda_request* request, int* done) {
  return guarded([&] { given(done, "done") = given(request, "request").ticket.done() ? 1 : 0; });
}

ronda_status ronda_wait(ronda_request* request) {
  return guarded([&] {
    const std::unique_ptr<ronda_request> owned(&given(request, "request"));
    owned->ticket.wait();
  });
}

ronda_status ronda_join(ronda_group* group, int* last) {
  return guarded([&] {
    const int rank = given(group, "the group").coordinator().join();
    if (last != nullptr) *last = rank;
  });
}

ronda_status ronda_split(ronda_group* group, const char* name, int color, int key, ronda_group** part) {
  return guarded([&] {
    given(part, "part") = nullptr;
    auto& coordinator = given(group, "the group").coordinator();
    *part = std::make_unique<ronda_group>(
                ronda_group{nullptr, coordinator.split(name == nullptr ? "split" : name, color, key)})
                .release();
  });
}

ronda_status ronda_close(ronda_group* part) {
  return guarded([&] {
    if (given(part, "part").keeper != nullptr)
      throw ronda::LogicError("ronda_close is for groups of a split; take ronda_finalize");
    close(part);
  });
}
