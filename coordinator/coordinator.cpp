#include <ronda/collectives/group/group.hpp>
#include <ronda/collectives/watch/unseen_work.hpp>
#include <ronda/collectives/watch/watchdog.hpp>
#include <ronda/coordinator/coordinator.hpp>
#include <ronda/coordinator/detail/communicator_link.hpp>
#include <ronda/coordinator/detail/loop.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>

#include <sys/prctl.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <future>
#include <optional>
#include <thread>
#include <utility>

namespace ronda {
namespace {

constexpr std::size_t batch_on_a_node = std::size_t{4} << 20, batch_across_nodes = std::size_t{16} << 20;
constexpr std::chrono::seconds patience_of_destructor{2};

CoordinatorLoop::Options loop_options(const Communicator& communicator, const CoordinatorOptions& options) {
  CoordinatorLoop::Options inner;
  inner.tuning.most_batch = communicator.topology().nodes == 1 ? batch_on_a_node : batch_across_nodes;
  inner.tuning.fixed_batch = options.batch_bytes;
  inner.tuning.fixed_gather = options.gather_seconds;
  inner.missing_warning = options.missing_warning;
  inner.missing_limit = options.missing_limit;
  inner.on_warning = options.on_warning;
  inner.print_warnings = options.print_warnings;
  return inner;
}

void require_any_thread(const Communicator& communicator) {
  if (!communicator.group().members().limits().any_thread)
    throw InputError(
        "a coordinator communicates by a thread of its own, and MPI was not initialised for that; give the World the "
        "option any_thread (MPI_THREAD_SERIALIZED where MPI is yours)");
}

/// Ends everything in a coordinator when the watchdog says that the job stands still: also where the coordinator's
/// thread stands in a call of MPI, and those who wait for it would wait for ever.
class EndByWatchdog final : public UnseenWork {
 public:
  EndByWatchdog(std::shared_ptr<Watchdog> watchdog, std::shared_ptr<CoordinatorLoop> loop)
      : watchdog_(std::move(watchdog)), loop_(std::move(loop)) {
    if (watchdog_ != nullptr) watchdog_->look_after(*this);
  }
  EndByWatchdog(const EndByWatchdog&) = delete;
  ~EndByWatchdog() {
    if (watchdog_ != nullptr) watchdog_->forget(*this);
  }
  Failure look() noexcept override { return {}; }
  void give_up(const std::string& reason) noexcept override {
    loop_->give_up(std::make_exception_ptr(CommunicationError(reason)));
  }

 private:
  std::shared_ptr<Watchdog> watchdog_;
  std::shared_ptr<CoordinatorLoop> loop_;
};

}  // namespace

void require_sense(const CoordinatorOptions& options) {
  constexpr std::size_t least = 4096, most = std::size_t{1} << 30;
  if (const auto bytes = options.batch_bytes;
      bytes && (!std::has_single_bit(*bytes) || *bytes < least || *bytes > most))
    throw InputError("a coordinator's batch_bytes is a power of two between 4 KiB and 1 GiB, not " +
                     std::to_string(*bytes));
  if (const auto seconds = options.gather_seconds; seconds && !(*seconds >= 0 && *seconds <= 1))
    throw InputError("a coordinator's gather_seconds is between 0 and 1, not " + shortest(*seconds));
  for (const double seconds : {options.missing_warning, options.missing_limit})
    if (!(seconds >= 0))
      throw InputError("a coordinator's missing_warning and missing_limit are 0 or more seconds, not " +
                       shortest(seconds));
}

Ticket::Ticket(std::shared_ptr<Submission> submission, std::uint64_t number)
    : submission_(std::move(submission)), number_(number) {}

bool Ticket::done() const noexcept { return submission_ == nullptr || submission_->finished(number_); }

void Ticket::wait() const {
  if (submission_ != nullptr) submission_->wait(number_);
}

struct Coordinator::Impl {
  explicit Impl(std::shared_ptr<CoordinatorLoop> the_loop) : loop(std::move(the_loop)) {}
  ~Impl();
  void start_thread();

  std::shared_ptr<CoordinatorLoop> loop;
  std::optional<EndByWatchdog> end_by_watchdog;  ///< none where the loop is a group's
  std::shared_ptr<Engine::Claim> claim;          ///< the thread's too, which may be left behind
  std::thread thread;                            ///< none where the loop is a group's
  std::future<void> over;
};

/// The thread owns what it uses, because it may have to be left behind where it waits for ranks that no longer come.
void Coordinator::Impl::start_thread() {
  std::promise<void> end;
  over = end.get_future();
  thread = std::thread([running = loop, own = claim, end = std::move(end)]() mutable {
    own->here();
    prctl(PR_SET_TIMERSLACK, 1000UL);  // nanoseconds: what it sleeps is short
    running->run();
    running.reset();
    own.reset();
    end.set_value();
  });
}

Coordinator::Impl::~Impl() {
  loop->desk().leave("an error, or no call of close");
  if (!thread.joinable()) return;
  if (over.wait_for(patience_of_destructor) == std::future_status::ready)
    thread.join();
  else
    thread.detach();
}

Coordinator::Coordinator(Communicator communicator, const CoordinatorOptions& options) {
  require_any_thread(communicator);
  require_sense(options);
  auto inner = loop_options(communicator, options);
  const auto watchdog = communicator.group().members().engine()->watchdog();
  const std::size_t stage_bytes = options.batch_bytes.value_or(inner.tuning.most_batch);
  Communicator::Group& group = communicator.group();
  auto link = std::make_unique<CommunicatorLink>(std::move(communicator), stage_bytes);
  impl_ = std::make_unique<Impl>(
      std::make_shared<CoordinatorLoop>(std::move(link), std::move(inner), std::make_shared<Bell>()));
  impl_->end_by_watchdog.emplace(watchdog, impl_->loop);
  impl_->claim = std::make_shared<Engine::Claim>(group.members().engine());
  impl_->start_thread();
}

Coordinator::Coordinator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Coordinator::Coordinator(Coordinator&&) noexcept = default;
Coordinator& Coordinator::operator=(Coordinator&&) noexcept = default;
Coordinator::~Coordinator() = default;

int Coordinator::rank() const noexcept { return impl_->loop->rank(); }
int Coordinator::size() const noexcept { return impl_->loop->size(); }

namespace {

void require_usable(const Tensor& tensor, std::string_view name) {
  const std::string quoted = "'" + std::string(name) + "'";
  if (tensor.device() != Device{})
    throw InputError(quoted + " is on " + tensor.device().text() +
                     "; the coordinator takes tensors in the host's memory");
  if (!tensor.desc().layout.is_plain()) throw InputError(quoted + " has a layout; the coordinator takes plain tensors");
  if (tensor.data() == nullptr && tensor.desc().count() > 0) throw InputError(quoted + " has no memory");
}

/// Runs `check`, which throws for arguments that cannot work.
template <class Check>
void check_call(CoordinatorLoop& loop, std::string_view name, const Check& check) {
  try {
    check();
  } catch (const Error&) {
    loop.desk().note_refused(name);
    throw;
  }
}

Ticket submit(CoordinatorLoop& loop, std::string_view name, const SubmissionDesk::Wish& wish,
              std::span<const Tensor> tensors, const std::function<void()>& fill = {}) {
  const std::string quoted = "'" + std::string(name) + "'";
  constexpr std::size_t longest_name = 1000;
  if (name.empty()) throw InputError("a tensor for the coordinator needs a name");
  if (name.size() > longest_name)
    throw InputError(quoted + " is too long for a name: at most " + std::to_string(longest_name) + " characters");
  check_call(loop, name, [&] {
    for (const Tensor& tensor : tensors) {
      require_sense(wish.op, tensor.dtype());
      require_usable(tensor, name);
    }
  });
  auto receipt = loop.desk().submit(name, wish, tensors, fill);
  return {std::move(receipt.submission), receipt.number};
}

}  // namespace

Ticket Coordinator::allreduce(std::string_view name, const Tensor& tensor, ReduceOp op) {
  return submit(*impl_->loop, name, {.kind = NamedKind::allreduce, .op = op}, {&tensor, 1});
}

Ticket Coordinator::allreduce(std::string_view name, std::span<const Tensor> tensors, ReduceOp op) {
  constexpr std::size_t most = 1000;  // what announces them must fit one message
  check_call(*impl_->loop, name, [&] {
    if (tensors.size() > most)
      throw InputError("'" + std::string(name) + "' is a group of " + std::to_string(tensors.size()) +
                       " tensors; at most " + std::to_string(most) + " go by one name");
  });
  return submit(*impl_->loop, name, {.kind = NamedKind::allreduce, .op = op}, tensors);
}

Ticket Coordinator::broadcast(std::string_view name, const Tensor& tensor, int root) {
  check_call(*impl_->loop, name, [&] {
    if (root < 0 || root >= size())
      throw LogicError("'" + std::string(name) + "' names rank " + std::to_string(root) + " of " +
                       std::to_string(size()));
  });
  return submit(*impl_->loop, name, {.kind = NamedKind::broadcast, .root = root}, {&tensor, 1});
}

Ticket Coordinator::allgather(std::string_view name, const Tensor& mine, const Tensor& all) {
  Elements part, whole;
  check_call(*impl_->loop, name, [&] {
    part = elements_of(mine);
    whole = elements_of(all);
    if (part.dtype != whole.dtype || part.count * static_cast<std::size_t>(size()) != whole.count)
      throw LogicError("'" + std::string(name) + "': " + std::to_string(size()) + " ranks' " + mine.desc().text() +
                       " do not fit into " + all.desc().text());
    require_usable(mine, name);
    require_usable(all, name);  // before it is filled
  });
  const std::size_t begin = part.count * static_cast<std::size_t>(rank());
  const auto fill = [&] {
    const auto place = whole.part({begin, begin + part.count}).bytes();
    if (!place.empty()) std::memmove(place.data(), part.data, place.size());
    const auto clear = [](std::span<std::byte> bytes) { std::fill(bytes.begin(), bytes.end(), std::byte{0}); };
    clear(whole.part({0, begin}).bytes());
    clear(whole.part({begin + part.count, whole.count}).bytes());
  };
  return submit(*impl_->loop, name, {.kind = NamedKind::allgather}, {&all, 1}, fill);
}

Ticket Coordinator::barrier(std::string_view name) {
  return submit(*impl_->loop, name, {.kind = NamedKind::barrier}, {});
}

void Coordinator::note_failed(std::string_view name) { impl_->loop->desk().note_refused(name); }

int Coordinator::join() { return impl_->loop->desk().join(); }

Coordinator Coordinator::split(std::string_view name, int color, int key) {
  check_call(*impl_->loop, name, [&] {
    if (color < 0)
      throw LogicError("the color " + std::to_string(color) + " of the split '" + std::string(name) +
                       "' is less than 0");
  });
  const Ticket ticket = submit(*impl_->loop, name, {.kind = NamedKind::split, .color = color, .key = key}, {});
  ticket.wait();
  return Coordinator(std::make_unique<Impl>(
      std::static_pointer_cast<CoordinatorLoop>(std::exchange(ticket.submission_->result, nullptr))));
}

void Coordinator::close() {
  impl_->loop->desk().close();
  if (impl_->thread.joinable()) impl_->thread.join();
  impl_->claim.reset();
}

Coordinator::Statistics Coordinator::statistics() const noexcept {
  const auto& counters = impl_->loop->counters();
  Statistics statistics;
  statistics.cycles = counters.cycles.load();
  statistics.busy_cycles = counters.busy_cycles.load();
  statistics.announcements = counters.announcements.load();
  statistics.submissions = counters.submissions.load();
  statistics.bytes = counters.bytes.load();
  statistics.batches = counters.batches.load();
  statistics.agreeing_seconds = static_cast<double>(counters.agreeing_nanoseconds.load()) * 1e-9;
  statistics.reducing_seconds = static_cast<double>(counters.reducing_nanoseconds.load()) * 1e-9;
  statistics.batch_bytes = counters.batch_bytes.load();
  statistics.gather_seconds = static_cast<double>(counters.gather_microseconds.load()) * 1e-6;
  return statistics;
}

}  // namespace ronda
