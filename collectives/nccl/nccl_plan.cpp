#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/nccl/nccl_plan.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace ronda::nccl {
namespace {

/// One of the library's calls, with all that it is given.
struct Call {
  Kind kind = Kind::none;
  Elements data = {};  ///< for those that work on equal parts of a whole: the whole, with the count of a part
  ReduceOp op = ReduceOp::sum;
  int root = 0;

  Answer make(Library& library, Comm comm, int rank, Stream& stream) const {
    const auto& [bytes, count, dtype] = data;
    switch (kind) {
      case Kind::allreduce: return library.all_reduce(comm, bytes, count, dtype, op, stream);
      case Kind::broadcast: return library.broadcast(comm, bytes, count, dtype, root, stream);
      case Kind::reduce: return library.reduce(comm, bytes, count, dtype, op, root, stream);
      case Kind::allgather: return library.all_gather(comm, bytes, count, dtype, rank, stream);
      case Kind::reduce_scatter: return library.reduce_scatter(comm, bytes, count, dtype, op, rank, stream);
      default: return {Status::failed, "a call that is not known here"};
    }
  }
};

class OnDevice final : public Collective {
 public:
  OnDevice(std::shared_ptr<Clique> clique, std::vector<Call> calls, const Description& description,
           std::shared_ptr<const void> keeper)
      : keeper_(std::move(keeper)),
        clique_(std::move(clique)),
        calls_(std::move(calls)),
        description_(description),
        stream_(clique_->stream()) {
    std::erase_if(calls_, [](const Call& call) { return call.data.count == 0; });
  }

  Event start(const Event& ready) override {
    if (calls_.empty()) return ready;
    stream_.wait(ready);
    const bool recorded = stream_.recording();  // its runs are the graph's, and watched as that
    const std::uint64_t record = recorded ? 0 : clique_->begin_run(description_);
    const Event began = recorded ? Event() : stream_.record();
    clique_->queue([this](Library& library, Comm comm, const auto& check) { check(make_all(library, comm)); });
    Event ended = stream_.record();
    if (!recorded) clique_->watch_run(record, began, ended);
    return ended;
  }

  // `start` gives the stream's events, never one of this object's.
  bool poll(std::uint64_t /*ticket*/) override { return true; }
  void wait(std::uint64_t /*ticket*/) override {}

  [[nodiscard]] bool moves_alone() const noexcept override { return true; }
  [[nodiscard]] std::string_view algorithm() const noexcept override { return "nccl"; }
  [[nodiscard]] CollectiveTimes times() const noexcept override { return {}; }

 private:
  /// The answer that says most. A group that was begun is ended whatever its calls say: NCCL would not end the
  /// communicator inside one.
  Answer make_all(Library& library, Comm comm) const {
    if (calls_.size() == 1) return calls_[0].make(library, comm, clique_->rank(), stream_);
    const auto went_wrong = [](const Answer& answer) {
      return answer.status != Status::success && answer.status != Status::in_progress;
    };
    Answer answer = library.group_start();
    if (went_wrong(answer)) return answer;
    for (const Call& call : calls_)
      if (!went_wrong(answer)) answer = call.make(library, comm, clique_->rank(), stream_);
    Answer ended = library.group_end();
    return went_wrong(answer) ? answer : ended;
  }

  std::shared_ptr<const void> keeper_;
  std::shared_ptr<Clique> clique_;
  std::vector<Call> calls_;
  Description description_;
  Stream& stream_;
};

class WatchedRecording final : public Recording {
 public:
  WatchedRecording(std::shared_ptr<Clique> clique, std::unique_ptr<Recording> recording, const std::string& what)
      : clique_(std::move(clique)), description_(Kind::replay, what, "nccl"), recording_(std::move(recording)) {}

  void replay(Stream& stream) override {
    const std::uint64_t record = clique_->begin_run(description_);
    const Event began = stream.record();
    clique_->queue([&](Library&, Comm, const auto&) { recording_->replay(stream); });
    clique_->watch_run(record, began, stream.record());
  }

 private:
  std::shared_ptr<Clique> clique_;
  Description description_;
  std::unique_ptr<Recording> recording_;  ///< goes first: NCCL does not end before what refers to it
};

void require_possible(ReduceOp op, DType dtype, const std::string& label) {
  require_sense(op, dtype);
  if (op == ReduceOp::bitwise_and) throw LogicError(label + ": NCCL knows no bitwise and");
  if (loses_nan(op, dtype))
    throw LogicError(label + ": NCCL's minimum and maximum pass over NaN; take auto or staged instead of nccl");
}

/// A call for each rank's part, where they are not all as long.
std::vector<Call> by_parts(Kind kind, const Elements& all, std::span<const Range> parts, ReduceOp op) {
  std::vector<Call> calls;
  for (std::size_t rank = 0; rank < parts.size(); ++rank)
    calls.push_back({kind, all.part(parts[rank]), op, static_cast<int>(rank)});
  return calls;
}

bool equal(std::span<const Range> parts) {
  return std::ranges::all_of(parts, [&](const Range& part) { return part.size() == parts[0].size(); });
}

}  // namespace

bool loses_nan(ReduceOp op, DType dtype) noexcept {
  const bool floating =
      dtype == DType::float32 || dtype == DType::float64 || dtype == DType::float16 || dtype == DType::bfloat16;
  return floating && (op == ReduceOp::minimum || op == ReduceOp::maximum);
}

std::unique_ptr<Collective> plan(std::shared_ptr<Clique> clique, const AllreduceSpec& spec,
                                 std::shared_ptr<const void> keeper) {
  std::vector<Call> calls;
  std::size_t count = 0;
  for (const auto* tensors : {&spec.tensors, &spec.exact})
    for (const Tensor& tensor : *tensors) {
      require_possible(spec.op, tensor.dtype(), spec.label);
      calls.push_back({Kind::allreduce, elements_of(tensor), spec.op});
      count += calls.back().data.count;
    }
  const DType dtype = calls.empty() ? DType::float32 : calls[0].data.dtype;
  return std::make_unique<OnDevice>(std::move(clique), std::move(calls),
                                    Description{Kind::allreduce, spec.label, "nccl", count, dtype, spec.op},
                                    std::move(keeper));
}

std::unique_ptr<Collective> plan(std::shared_ptr<Clique> clique, const BroadcastSpec& spec,
                                 std::shared_ptr<const void> keeper) {
  const Elements data = elements_of(spec.tensor);
  const Description description{Kind::broadcast, spec.label, "nccl", data.count, data.dtype, ReduceOp::sum, spec.root};
  return std::make_unique<OnDevice>(std::move(clique),
                                    std::vector<Call>{{Kind::broadcast, data, ReduceOp::sum, spec.root}}, description,
                                    std::move(keeper));
}

std::unique_ptr<Collective> plan(std::shared_ptr<Clique> clique, const AllgatherSpec& spec,
                                 std::span<const Range> parts, std::shared_ptr<const void> keeper) {
  const Elements all = elements_of(spec.all);
  std::vector<Call> calls{{Kind::allgather, {all.data, parts[0].size(), all.dtype}}};
  if (!equal(parts)) calls = by_parts(Kind::broadcast, all, parts, ReduceOp::sum);
  return std::make_unique<OnDevice>(std::move(clique), std::move(calls),
                                    Description{Kind::allgather, spec.label, "nccl", all.count, all.dtype},
                                    std::move(keeper));
}

std::unique_ptr<Collective> plan(std::shared_ptr<Clique> clique, const ReduceScatterSpec& spec,
                                 std::span<const Range> parts, std::shared_ptr<const void> keeper) {
  const Elements all = elements_of(spec.all);
  require_possible(spec.op, all.dtype, spec.label);
  std::vector<Call> calls{{Kind::reduce_scatter, {all.data, parts[0].size(), all.dtype}, spec.op}};
  if (!equal(parts)) calls = by_parts(Kind::reduce, all, parts, spec.op);
  return std::make_unique<OnDevice>(
      std::move(clique), std::move(calls),
      Description{Kind::reduce_scatter, spec.label, "nccl", all.count, all.dtype, spec.op}, std::move(keeper));
}

std::unique_ptr<Recording> watched(std::shared_ptr<Clique> clique, std::unique_ptr<Recording> recording,
                                   const std::string& what) {
  return std::make_unique<WatchedRecording>(std::move(clique), std::move(recording), what);
}

}  // namespace ronda::nccl
