#include <ronda/collectives/nccl/clique.hpp>
#include <ronda/collectives/watch/diagnosis.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

namespace ronda::nccl {
namespace {

/// Between two looks at a call that is not over, once it has taken longer than NCCL takes to queue one.
constexpr auto pause = std::chrono::microseconds(100);
constexpr double soon = 200e-6;
/// Seconds after which the ranks tell each other how far they are: at first, and at most.
constexpr double first_round = 1e-3, longest_round = 0.05;

Message remedy() {
  return "; NCCL_DEBUG=INFO makes NCCL say more, and " + setting("allreduce", "staged") +
         " goes through the host instead";
}

/// What a rank tells the others of its call.
std::string word_of(const Answer& answer, bool late) {
  switch (answer.status) {
    case Status::success: return "done";
    case Status::in_progress: return late ? "late" : "busy";
    case Status::remote_error: return "remote " + answer.text;
    case Status::failed: break;
  }
  return "failed " + answer.text;
}

}  // namespace

class Clique::Memory {
 public:
  Memory(std::shared_ptr<Library> library, void* memory) : library_(std::move(library)), memory_(memory) {}
  Memory(const Memory&) = delete;
  ~Memory() { library_->free(memory_); }

 private:
  std::shared_ptr<Library> library_;
  void* memory_;
};

Clique::Clique(std::shared_ptr<Library> library, std::shared_ptr<DeviceLanes> lanes, Place place)
    : library_(std::move(library)), lanes_(std::move(lanes)), place_(std::move(place)) {
  try {
    connect();
    if (place_.watchdog != nullptr) place_.watchdog->look_after(*this);
  } catch (...) {  // also of the group's messages: NCCL's thread may be at work for this object still
    disconnect("it was never connected");
    throw;
  }
}

Clique::~Clique() {
  if (place_.watchdog != nullptr) place_.watchdog->forget(*this);
  const std::lock_guard turn(turn_);
  disconnect("its communicator is gone");
}

// ---- connecting ---------------------------------------------------------------------------------------------------

void Clique::connect() {
  const UniqueId id = agree_on_id();
  lanes_->context->enter();  // NCCL takes this thread's GPU
  Answer answer = library_->init(comm_, size(), id, rank());
  const Outcome outcome = settle("NCCL's start", std::move(answer));
  if (outcome.error.empty()) return;
  disconnect(outcome.error);  // until this is over NCCL may write `comm_`
  throw CommunicationError(reason_);
}

/// The first rank's. It goes to everybody, or the reason why there is none.
UniqueId Clique::agree_on_id() {
  UniqueId id{};
  std::string text;
  if (rank() == 0) {
    const Answer answer = library_->make_unique_id(id);
    text = answer.status == Status::success ? std::string(id.begin(), id.end()) : answer.text;
  }
  const std::string first = place_.gather(text)[0];
  if (first.size() != id.size()) fail(place_.names[0] + ": NCCL gives no identifier: " + first + remedy());
  std::copy(first.begin(), first.end(), id.begin());
  return id;
}

Clique::Outcome Clique::settle(std::string_view call, Answer answer) {
  const double began = place_.clock.now();
  for (double round = first_round;; round = std::min(2 * round, longest_round)) {
    answer = wait_for_own(std::move(answer), round);
    const bool late = place_.deadline > 0 && place_.clock.now() - began > place_.deadline;
    const std::vector<std::string> words = place_.gather(word_of(answer, late));
    for (const std::string_view blamed : {"failed ", "remote "})  // who only heard of a failure knows less
      for (std::size_t rank = 0; rank < words.size(); ++rank)
        if (words[rank].starts_with(blamed))
          return {place_.names[rank] + ": " + std::string(call) + " failed: " + words[rank].substr(blamed.size()) +
                  remedy()};
    if (std::ranges::all_of(words, [](const auto& word) { return word == "done"; })) return {};
    if (std::ranges::find(words, "late") == words.end()) continue;
    std::string missing;
    for (std::size_t rank = 0; rank < words.size(); ++rank)
      if (words[rank] != "done") missing += (missing.empty() ? "" : ", ") + place_.names[rank];
    return {std::string(call) + " is not over after " + std::to_string(std::lround(place_.deadline)) + " s on " +
                missing + ": a network that NCCL takes may not connect the hosts (NCCL_SOCKET_IFNAME names one), or " +
                setting("communication_timeout") + " is too short" + remedy(),
            true};
  }
}

Answer Clique::wait_for_own(Answer answer, double seconds) {
  const double began = place_.clock.now();
  while (answer.status == Status::in_progress && place_.clock.now() - began < seconds) {
    if (place_.clock.now() - began < soon)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(pause);
    answer = library_->state(comm_);
  }
  return answer;
}

// ---- memory -------------------------------------------------------------------------------------------------------

Buffer Clique::allocate(std::size_t bytes, Message& note) {
  forget_unused();
  void* data = nullptr;
  lanes_->context->enter();
  const Answer taken = library_->allocate(&data, bytes);
  auto memory = taken.status == Status::success ? std::make_shared<Memory>(library_, data) : nullptr;
  const Outcome allocated = settle("taking " + std::to_string(bytes) + " bytes of GPU memory", taken);
  if (!allocated.error.empty()) throw ResourceError(allocated.error);
  lanes_->context->clear(data, bytes, *lanes_->collectives);
  lanes_->collectives->synchronize();

  const std::unique_lock turn = begin_queueing();
  Window& window = registered_.emplace_back(Registered{memory}).window;  // there for NCCL's thread until it is aborted
  Answer opened = library_->open_window(comm_, data, bytes, window);
  if (opened.status == Status::success) opened = library_->state(comm_);  // NCCL may be at it in spite of its answer
  const bool refused = opened.status == Status::failed;                   // at once, so that nothing is under way
  const Outcome registered = settle("making memory known to NCCL", std::move(opened));
  if (registered.late) fail(registered.error);
  if (registered.error.empty()) {
    const auto words = place_.gather(window != nullptr ? "opened" : "none");  // NCCL calls either a success
    if (const auto none = std::ranges::find(words, "none"); none != words.end())
      note = "NCCL gives no symmetric window on " + place_.names[static_cast<std::size_t>(none - words.begin())] +
             ", which costs speed where GPUs reach each other's memory";
  } else {
    if (!refused && window != nullptr) library_->close_window(comm_, window);
    registered_.pop_back();
    if (library_->state(comm_).status != Status::success) fail(registered.error);
    note = "NCCL works in memory that it does not know beforehand, which is slower: " + registered.error;
  }
  return {static_cast<std::byte*>(data), bytes, lanes_->context->device(), std::move(memory)};
}

/// Lets go of memory that nobody refers to any more on any rank. Collective.
void Clique::forget_unused() {
  if (registered_.empty()) return;
  std::string unused;
  for (const auto& each : registered_) unused += each.memory.use_count() == 1 ? 'y' : 'n';
  if (unused.find('y') != std::string::npos) lanes_->collectives->synchronize();  // what used it is over here
  const auto all = place_.gather(unused);
  const std::unique_lock turn = begin_queueing();
  std::size_t place = 0;
  for (auto each = registered_.begin(); each != registered_.end(); ++place) {
    if (!std::ranges::all_of(all, [&](const std::string& one) { return one[place] == 'y'; })) {
      ++each;
      continue;
    }
    if (each->window != nullptr) library_->close_window(comm_, each->window);
    each = registered_.erase(each);
  }
  end_queueing();
}

// ---- queueing -----------------------------------------------------------------------------------------------------

std::unique_lock<std::mutex> Clique::begin_queueing() {
  lanes_->context->enter();
  std::unique_lock turn(turn_);
  if (!reason_.empty()) throw CommunicationError(reason_);
  await_readiness();  // what was begun before may go on, and NCCL takes nothing meanwhile
  return turn;
}

void Clique::end_queueing() { await_readiness(); }

/// Until NCCL would take work.
void Clique::await_readiness() {
  const double patience = place_.deadline > 0 ? place_.deadline : std::numeric_limits<double>::infinity();
  const Answer answer = wait_for_own(library_->state(comm_), patience);
  check(answer);
  if (answer.status == Status::in_progress)
    fail(place_.names[static_cast<std::size_t>(rank())] + ": NCCL takes no work for " +
         std::to_string(std::lround(place_.deadline)) + " s" + remedy());
}

void Clique::check(const Answer& answer) {
  if (answer.status == Status::success || answer.status == Status::in_progress) return;
  fail(blame(answer));
}

Message Clique::blame(const Answer& answer) const {
  return place_.names[static_cast<std::size_t>(rank())] + ": NCCL " + library_->version() + " reports " + answer.text +
         remedy();
}

void Clique::fail(const Message& reason) {
  disconnect_beside_recordings(reason);
  throw CommunicationError(reason_);
}

/// Whoever calls this has the turn, or is the only one to know this object, and no recording refers to the
/// communicator.
void Clique::disconnect(const Message& reason) noexcept {
  if (reason_.empty()) reason_ = reason;
  if (comm_ != nullptr) library_->abort(comm_);  // from here on NCCL writes nowhere
  comm_ = nullptr;
  registered_.clear();
}

/// The same where recordings may refer to it, also one that is being made: NCCL stops at once what runs, but its call
/// returns only when they are gone, which whoever calls this may have to see to. So a thread of its own makes the call.
void Clique::disconnect_beside_recordings(const Message& reason) noexcept {
  if (reason_.empty()) reason_ = reason;
  if (comm_ == nullptr) return;
  try {
    auto memory = std::make_shared<std::list<Registered>>(std::move(registered_));
    aborting_ = std::async(std::launch::async, [library = library_, lanes = lanes_, comm = comm_, memory] {
      try {
        lanes->context->enter();
      } catch (const std::exception&) {  // the device is at fault: NCCL may still stop
      }
      library->abort(comm);
      memory->clear();
    });
    comm_ = nullptr;
    // Usually no recording is there, and it is over at once.
    aborting_.wait_for(std::chrono::milliseconds(200));
  } catch (const std::exception&) {  // no thread can be had
    disconnect(reason);
  }
}

// ---- what the watchdog sees ---------------------------------------------------------------------------------------

std::uint64_t Clique::begin_run(const Description& description) noexcept {
  return place_.ledger == nullptr ? 0 : place_.ledger->begin(description);
}

void Clique::watch_run(std::uint64_t record, const Event& began, const Event& ended) {
  if (place_.ledger == nullptr || place_.ledger->recorder == nullptr) return;
  const std::lock_guard door(runs_door_);
  if (run_count_ == runs_.size()) retire_runs();
  if (run_count_ == runs_.size()) return place_.ledger->end(record, ronda::Outcome::done);  // not looked at
  runs_[(first_run_ + run_count_) % runs_.size()] = {record, began, ended};
  ++run_count_;
}

/// They end in the order in which they were queued.
void Clique::retire_runs() {
  bool any = false;
  while (run_count_ > 0 && runs_[first_run_].ended.ready()) {
    place_.ledger->end(runs_[first_run_].record, ronda::Outcome::done);
    first_run_ = (first_run_ + 1) % runs_.size();
    --run_count_;
    any = true;
  }
  if (any) place_.ledger->recorder->moved();
}

void Clique::require_whole() {
  {
    const std::lock_guard door(runs_door_);
    retire_runs();
  }
  const std::lock_guard turn(turn_);
  if (!reason_.empty()) throw CommunicationError(reason_);
}

UnseenWork::Failure Clique::look() noexcept {
  const std::string& me = place_.names[static_cast<std::size_t>(rank())];
  try {
    const std::string waits_for = look_at_runs();
    const std::unique_lock turn(turn_, std::try_to_lock);
    if (!turn.owns_lock() || comm_ == nullptr) return {};  // who has the turn looks himself
    const Answer answer = library_->state(comm_);
    if (answer.status == Status::success || answer.status == Status::in_progress) return {};
    return {(blame(answer) + waits_for).text(), answer.status == Status::remote_error};
  } catch (const std::exception& error) {  // the device itself
    return {me + ": " + error.what()};
  }
}

/// Tells the recorder how the runs fare; returns words for the one that waits for others.
std::string Clique::look_at_runs() {
  const std::lock_guard door(runs_door_);
  Recorder* recorder = place_.ledger == nullptr ? nullptr : place_.ledger->recorder.get();
  if (recorder == nullptr) return {};
  retire_runs();
  if (run_count_ == 0 || !runs_[first_run_].began.ready()) return {};
  recorder->stands_still();
  recorder->still_alive();
  return "; " + text_of(recorder->file().ring[runs_[first_run_].record % record_ring]) + " was in flight";
}

void Clique::give_up(const std::string& reason) noexcept {
  // A thread that stands still inside NCCL keeps the turn; then the process has to end without this.
  std::unique_lock turn(turn_, std::try_to_lock);
  for (int tries = 0; !turn.owns_lock() && tries < 1000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    static_cast<void>(turn.try_lock());
  }
  if (turn.owns_lock()) disconnect_beside_recordings(reason);
}

}  // namespace ronda::nccl
