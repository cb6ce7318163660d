#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/collectives/ready_buckets.hpp>
#include <ronda/collectives/tuning/compression_choice.hpp>
#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>

#include <algorithm>
#include <cmath>
#include <new>

namespace ronda {
namespace {

Tensor slice(const Buffer& arena, const FusionBuffer::Bucket& bucket, DType dtype) {
  const auto count = static_cast<std::int64_t>(bucket.bytes / size_of(dtype));
  return {{Shape{count}, dtype, {}}, arena.data() + bucket.offset, arena.device()};
}

Tensor numbers_of(const Buffer& control) {
  return {{Shape{std::int64_t{StepControl::count}}, DType::float64, {}}, control.data(), control.device()};
}

Buffer memory_for_control(Communicator& communicator, Device device) {
  Buffer memory =
      communicator.allocate(sizeof(StepControl), device == Device{} ? Memory::node_shared : Memory::on_device);
  if (device == Device{}) new (memory.data()) StepControl();  // a device's is zero, which is the same
  return memory;
}

/// Returns them.
std::vector<GradientSlot> checked(std::vector<GradientSlot> slots, DType dtype, std::size_t arena_bytes) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].offset % Buffer::alignment != 0 || slots[i].bytes % size_of(dtype) != 0 ||
        (i > 0 && slots[i].offset < slots[i - 1].offset + slots[i - 1].bytes))
      throw LogicError("the gradient of " + slots[i].name + " is not aligned, or overlaps the one before");
    if (slots[i].offset + slots[i].bytes > arena_bytes)
      throw LogicError("the gradient of " + slots[i].name + " ends beyond the " + std::to_string(arena_bytes) +
                       " bytes of the arena");
  }
  return slots;
}

/// `, bf16`; nothing where nothing was asked for.
std::string how_sent(const FusionBuffer::Bucket& bucket, Compression wanted, const Communicator& group) {
  if (bucket.compression != Compression::none) return ", " + std::string(name_of(bucket.compression));
  if (wanted == Compression::none) return {};
  const bool in_memory = group.size() == 1 || sends_nothing(parse_allreduce(bucket.algorithm), group.topology());
  return in_memory ? ", not compressed: nothing is sent" : ", not compressed: it would not pay";
}

}  // namespace

std::vector<FusionBuffer::Bucket> FusionBuffer::fill(std::span<const GradientSlot> slots,
                                                     const FusionOptions& options) {
  std::vector<Bucket> buckets;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const std::size_t end = slots[i].offset + slots[i].bytes;
    const std::size_t limit = buckets.size() <= 1 ? options.first_bucket_bytes : options.bucket_bytes;
    if (buckets.empty() || end - buckets.back().offset > limit) buckets.push_back({i, i, slots[i].offset, 0, {}});
    buckets.back().end_slot = i + 1;
    buckets.back().bytes = end - buckets.back().offset;
  }
  if (buckets.empty()) buckets.push_back({0, 0, 0, 0, {}});  // for the control block
  return buckets;
}

struct FusionBuffer::Impl {
  Impl(Communicator group, std::vector<GradientSlot> gradient_slots, const Buffer& arena, const FusionOptions& options);
  void start_full_buckets(Stream& stream);
  void check_complete() const;
  void finish(std::span<const Event> events, double since, Stream& stream);

  Communicator communicator;
  Compression compression;  ///< as asked for
  std::string label;
  std::vector<Bucket> buckets;
  ReadyBuckets ready;

  Buffer control_memory;  ///< as fast as the arena, or the few numbers would take longer than a bucket
  StepControl* control;
  std::vector<std::unique_ptr<Collective>> reductions;  ///< a bucket each; they refer to the memory above
  std::unique_ptr<Collective> control_alone;            ///< where buckets start late

  std::vector<Event> done;      ///< by bucket
  std::size_t next_bucket = 0;  ///< all before it are started
  std::size_t oldest = 0;       ///< all before it are known to be done
  bool in_step = false;
  double exposed_seconds = 0;
};

FusionBuffer::Impl::Impl(Communicator group, std::vector<GradientSlot> gradient_slots, const Buffer& arena,
                         const FusionOptions& options)
    : communicator(std::move(group)),
      compression(options.compression),
      label(options.label),
      buckets(fill(gradient_slots, options)),
      ready(checked(std::move(gradient_slots), options.dtype, arena.bytes()), buckets),
      control_memory(memory_for_control(communicator, arena.device())),
      control(reinterpret_cast<StepControl*>(control_memory.data())),
      done(buckets.size()) {
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    Bucket& bucket = buckets[i];
    AllreduceSpec spec{.tensors = {slice(arena, bucket, options.dtype)},
                       .algorithm = options.algorithm,
                       .label = options.label + " " + std::to_string(i),
                       .compression = options.compression,
                       .seed = options.seed,
                       .flush_denormals = true};
    if (i + 1 == buckets.size()) spec.exact.push_back(numbers_of(control_memory));
    reductions.push_back(communicator.plan(spec));
    bucket.algorithm = reductions.back()->algorithm();
    bucket.compression = reductions.back()->compression();
  }
  if (options.late)
    control_alone = communicator.plan(AllreduceSpec{
        .tensors = {numbers_of(control_memory)}, .algorithm = options.algorithm, .label = "the control block"});
}

/// Buckets start in one order on all ranks, whatever order a model's layers mark their slots in.
void FusionBuffer::Impl::start_full_buckets(Stream& stream) {
  for (; next_bucket < ready.full(); ++next_bucket) done[next_bucket] = reductions[next_bucket]->start(stream.record());
}

FusionBuffer::FusionBuffer(Communicator communicator, std::vector<GradientSlot> slots, const Buffer& arena,
                           const FusionOptions& options)
    : impl_(std::make_unique<Impl>(std::move(communicator), std::move(slots), arena, options)),
      moves_alone_(std::ranges::all_of(impl_->reductions, [](const auto& one) { return one->moves_alone(); })) {}

FusionBuffer::~FusionBuffer() = default;

void FusionBuffer::begin() {
  Impl& step = *impl_;
  if (step.in_step) throw LogicError("a step of the fusion buffer was begun before the last one was waited for");
  step.ready.begin();
  step.next_bucket = step.oldest = 0;
  step.in_step = true;
}

StepControl& FusionBuffer::control() noexcept { return *impl_->control; }

void FusionBuffer::mark_ready(ParameterId id, Stream& stream) {
  Impl& step = *impl_;
  if (!step.in_step)
    throw LogicError("the gradient of parameter " + std::to_string(index_of(id)) + " was marked ready outside a step");
  step.ready.mark(id);
  if (step.control_alone) return;  // late
  step.start_full_buckets(stream);
  poll();
}

void FusionBuffer::poll() {
  if (moves_alone_) return;
  Impl& step = *impl_;
  while (step.oldest < step.next_bucket && step.done[step.oldest].ready()) ++step.oldest;
}

void FusionBuffer::Impl::check_complete() const {
  if (!in_step) throw LogicError("the fusion buffer was waited for outside a step");
  ready.require_all();
}

void FusionBuffer::Impl::finish(std::span<const Event> events, double since, Stream& stream) {
  in_step = false;  // also where waiting throws
  for (const Event& event : events) stream.wait(event);
  exposed_seconds += steady_seconds() - since;
}

void FusionBuffer::wait(Stream& stream) {
  impl_->check_complete();
  const double start = steady_seconds();
  impl_->start_full_buckets(stream);  // also a model's without parameters, which has only the control block
  impl_->finish(impl_->done, start, stream);
}

void FusionBuffer::wait_for_control(Stream& stream) {
  if (!impl_->control_alone) throw LogicError("a fusion buffer whose buckets start early has no control block alone");
  impl_->check_complete();
  const double start = steady_seconds();
  const Event reduced = impl_->control_alone->start(stream.record());
  impl_->finish({&reduced, 1}, start, stream);
}

std::span<const FusionBuffer::Bucket> FusionBuffer::buckets() const noexcept { return impl_->buckets; }
double FusionBuffer::exposed_seconds() const noexcept { return impl_->exposed_seconds; }

double FusionBuffer::longest_seconds() const noexcept {
  double seconds = 0;
  for (const auto& reduction : impl_->reductions) seconds = std::max(seconds, reduction->times().total);
  return seconds;
}

std::uint64_t FusionBuffer::sent_bytes() const noexcept {
  std::uint64_t bytes = impl_->control_alone ? impl_->control_alone->sent_bytes() : 0;
  for (const auto& reduction : impl_->reductions) bytes += reduction->sent_bytes();
  return bytes;
}

std::size_t FusionBuffer::memory() const noexcept {
  std::size_t bytes = 0;
  for (const auto& reduction : impl_->reductions) bytes += reduction->memory();
  return bytes;
}

void FusionBuffer::visit(StateVisitor& visitor) {
  for (const auto& reduction : impl_->reductions) reduction->visit(visitor);
}

std::vector<std::string> FusionBuffer::describe() const {
  std::vector<std::string> lines;
  for (const Bucket& bucket : impl_->buckets)
    lines.push_back(impl_->label + " " + std::to_string(lines.size()) + ": slots " + std::to_string(bucket.first_slot) +
                    " to " + std::to_string(bucket.end_slot) + ", " + std::to_string(bucket.bytes) + " bytes by " +
                    bucket.algorithm + how_sent(bucket, impl_->compression, impl_->communicator));
  return lines;
}

std::vector<std::string> FusionBuffer::report() const {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < impl_->buckets.size(); ++i) {
    const CollectiveTimes times = impl_->reductions[i]->times();
    if (times.runs == 0) continue;
    TextWriter line;
    line << impl_->label << ' ' << i << ": " << impl_->buckets[i].bytes << " bytes by " << impl_->buckets[i].algorithm
         << " took " << std::llround(times.total / static_cast<double>(times.runs) * 1e6) << " us in the mean";
    if (times.predicted) line << ", the model has " << std::llround(*times.predicted * 1e6) << " us";
    lines.push_back(line.str());
  }
  return lines;
}

}  // namespace ronda
