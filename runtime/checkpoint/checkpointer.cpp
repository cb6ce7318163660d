#include <ronda/collectives/phase.hpp>
#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/process.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/checkpointer.hpp>
#include <ronda/runtime/io/atomic_file.hpp>
#include <ronda/runtime/io/whole_file.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

namespace ronda {
namespace {

namespace fs = std::filesystem;

/// Adds the time of its life to a sum.
class Stopwatch {
 public:
  Stopwatch(double& sum, const Clock& clock) : sum_(sum), clock_(clock), start_(clock.now()) {}
  Stopwatch(const Stopwatch&) = delete;
  ~Stopwatch() { sum_ += clock_.now() - start_; }

 private:
  double& sum_;
  const Clock& clock_;
  double start_;
};

/// A disk that is full takes empty files.
void write_on_trial(const fs::path& path, Storage& storage) {
  try {
    write_text(path, std::string(1 << 14, '-'), storage);
    static_cast<void>(storage.remove(path));
  } catch (const Error& error) {
    throw InputError("checkpoints cannot be written: " + error.message() + "; make room, or give another " +
                     setting("checkpoint_dir"));
  }
}

}  // namespace

CheckpointInterval parse_checkpoint_interval(std::string_view text) {
  CheckpointInterval interval;
  const char* const end = text.data() + text.size();
  const auto steps = std::from_chars(text.data(), end, interval.steps);
  if (steps.ec == std::errc() && steps.ptr == end && interval.steps > 0) return interval;
  if (const auto seconds = parse_duration(text)) return {.steps = 0, .seconds = *seconds};
  throw InputError("a checkpoint is taken every N steps, or every 30s, 10m or 1h; '" + std::string(text) +
                   "' is neither");
}

Checkpointer::Checkpointer(Communicator communicator, CheckpointOptions options, Faults faults, EventSink& sink,
                           Storage& storage)
    : communicator_(std::move(communicator)),
      options_(std::move(options)),
      sink_(sink),
      storage_(storage),
      last_save_(communicator_.clock().now()) {
  const std::string token = communicator_.broadcast_text(random_token());
  check_directory();
  writer_ = std::make_unique<CheckpointWriter>(options_.directory, options_.keep, token, communicator_.rank(),
                                               std::move(faults), lock_ ? &*lock_ : nullptr, storage_);
  if (options_.thread) thread_ = std::make_unique<BackgroundThread>(writer_->work());
}

/// Rank 0 leaves a file with words that only this run knows; the others have to find them.
void Checkpointer::check_directory() {
  const fs::path& directory = options_.directory;
  const std::string words = communicator_.broadcast_text(random_token());
  const fs::path token = directory / (".token-" + words);
  agree(communicator_, [&] {
    if (communicator_.rank() != 0) return;
    const Phase phase(communicator_, Activity::writing, FolderLock::longest);
    const std::error_code error = storage_.make_folder(directory);
    if (error || !fs::is_directory(directory))
      throw InputError("cannot create the folder of checkpoints " + directory.string() + ": " +
                       (error ? error.message() : "there is something else of that name"));
    lock_.emplace(
        directory, options_.patience, [&](const std::string& text) { sink_.on_note(text); }, communicator_.clock(),
        storage_);
    remove_leftovers(directory, storage_);
    write_on_trial(token, storage_);
    write_text(token, words, storage_);
  });
  agree(communicator_, [&] {
    std::ifstream file(token);
    const std::string found{std::istreambuf_iterator<char>(file), {}};
    if (found != words)
      throw InputError("the folder of checkpoints " + directory.string() + " is not the one that rank 0 sees: give " +
                       setting("checkpoint_dir") + " a place that all hosts share");
    write_on_trial(directory / (".token-" + words + "-" + std::to_string(communicator_.rank())), storage_);
  });
  if (communicator_.rank() == 0) static_cast<void>(storage_.remove(token));
}

void Checkpointer::bind(std::span<const State> states, const ComputeDevice& device) {
  for (const State& state : states)
    if (is_counter(state))
      counters_.push_back(state);
    else if (state.scope == Scope::averaged)
      averaged_.push_back(state.name);
  agree(communicator_,
        [&] { snapshot_.emplace(share_of(states, communicator_.rank(), communicator_.size()), device); });
  last_save_ = communicator_.clock().now();
}

StepFlags Checkpointer::flags() const {
  StepFlags flags;
  if (communicator_.rank() == 0 && options_.every.seconds > 0 &&
      communicator_.clock().now() - last_save_ >= options_.every.seconds)
    flags.save = 1;
  if (under_way_) {
    const auto part = writer_->part();
    flags.written = part == CheckpointWriter::Outcome::done ? 1 : 0;
    flags.unwritten = part == CheckpointWriter::Outcome::failed ? 1 : 0;
  }
  return flags;
}

bool Checkpointer::after_step(const StepFlags& total, std::uint64_t step) {
  const Stopwatch exposed(exposed_seconds_, communicator_.clock());
  hear_of_publication();
  if (under_way_ && total.written + total.unwritten == communicator_.size()) settle(total.unwritten > 0);
  if (total.save > 0 || (options_.every.steps > 0 && step % options_.every.steps == 0)) due_ = true;
  if (due_ && options_.on_time) settle_under_way();
  return due_ && !under_way_;
}

/// All ranks are here after the same step, and know that all parts are written, or that some could not be.
void Checkpointer::settle(bool failed) {
  under_way_ = false;
  failed_ = failed && !write_in_freed_room();
  if (!failed_) {
    publication_ = {manifest_.step, last_save_};
    if (communicator_.rank() == 0) writer_->publish(manifest_);
  }
  writer_->forget_part();
}

/// Call after some parts could not be written. If the disk was full, removes the oldest checkpoint and writes all parts
/// again, as long as a checkpoint may be removed; the training waits meanwhile. False: the checkpoint is dropped.
bool Checkpointer::write_in_freed_room() {
  auto failures = failures_of_parts();
  hear_of_publication();  // the last publication has ended
  while (parts_lack_room()) {
    writer_->make_room(manifest_.step);
    if (!std::ranges::all_of(failures_of_parts(), &std::string::empty)) break;
    tell_removed();
    writer_->write_part(*snapshot_, manifest_.step);
    failures = failures_of_parts();
    if (std::ranges::all_of(failures, &std::string::empty)) return true;
  }
  if (communicator_.rank() > 0) return false;
  const auto failure = std::ranges::find_if_not(failures, &std::string::empty);
  const auto rank = static_cast<std::size_t>(failure - failures.begin());
  warn_not_written(manifest_.step,
                   "rank " + std::to_string(rank) + " on " + communicator_.topology().hosts[rank] + ": " + *failure);
  writer_->discard(manifest_.step);
  return false;
}

/// Waits for all ranks' parts. Returns why each could not be written, by rank; empty for written parts.
std::vector<std::string> Checkpointer::failures_of_parts() {
  wait_for_all([&] { return writer_->part() != CheckpointWriter::Outcome::running; });
  return communicator_.gather_texts(writer_->part() == CheckpointWriter::Outcome::failed ? writer_->part_failure()
                                                                                         : "");
}

/// Whether a full disk is the only reason that parts were not written.
bool Checkpointer::parts_lack_room() {
  const bool otherwise = writer_->part() == CheckpointWriter::Outcome::failed && !writer_->part_lacks_room();
  return std::ranges::all_of(communicator_.gather_texts(otherwise ? "otherwise" : ""), &std::string::empty);
}

void Checkpointer::warn_not_written(std::uint64_t step, const std::string& why) {
  sink_.on_warning("the checkpoint of step " + std::to_string(step) + " was not written: " + why +
                   "; training goes on, and the checkpoints before it are kept");
}

void Checkpointer::tell_removed() {
  for (const fs::path& path : writer_->removed())
    sink_.on_message(Severity::warning, "the disk has no room for another checkpoint: " + path.string() +
                                            " is removed, and " + std::to_string(writer_->keep()) +
                                            " are kept from here on (" + setting("keep", options_.keep) + ")");
}

/// Rank 0's thread has published a checkpoint, or could not.
void Checkpointer::hear_of_publication() {
  const auto outcome = writer_->publication();
  if (outcome == CheckpointWriter::Outcome::done) {
    ++written_;
    slowest_seconds_ = std::max(slowest_seconds_, communicator_.clock().now() - publication_.saved);
    sink_.on_detail("checkpoint step-" + std::to_string(publication_.step) + " is written");
    for (const fs::path& path : writer_->set_aside())
      sink_.on_note("a later checkpoint, of before this training went back, is set aside as " + path.string());
    tell_removed();
  } else if (outcome == CheckpointWriter::Outcome::failed) {
    failed_ = true;
    tell_removed();
    warn_not_written(publication_.step, writer_->publication_failure());
  } else {
    return;
  }
  writer_->forget_publication();
}

void Checkpointer::save(CheckpointManifest manifest) {
  const Stopwatch exposed(exposed_seconds_, communicator_.clock());
  sink_.on_checkpoint(manifest.step);
  manifest.ranks = communicator_.size();
  manifest.hosts = communicator_.topology().nodes;
  for (const auto& counter : counters_) {
    const auto numbers = counter.tensor.as<std::int64_t>();
    manifest.counters[counter.name].assign(numbers.begin(), numbers.end());
  }
  manifest.averaged = averaged_;
  manifest_ = std::move(manifest);
  snapshot_->take();
  writer_->write_part(*snapshot_, manifest_.step);
  under_way_ = true;
  due_ = false;
  last_save_ = communicator_.clock().now();
}

void Checkpointer::save_last(CheckpointManifest manifest) {
  finish();
  save(std::move(manifest));
}

/// Waits for all ranks' parts.
void Checkpointer::settle_under_way() {
  if (!under_way_) return;
  const auto failures = failures_of_parts();
  hear_of_publication();
  settle(!std::ranges::all_of(failures, &std::string::empty));
}

bool Checkpointer::finish() {
  const Stopwatch exposed(exposed_seconds_, communicator_.clock());
  settle_under_way();
  wait_for_all([&] { return writer_->publication() != CheckpointWriter::Outcome::running; });
  hear_of_publication();
  failed_ = communicator_.broadcast_text(failed_ ? "failed" : "") == "failed";
  return !failed_;
}

/// Asks again and again rather than wait once: a slow disk must not look like a rank that has gone.
void Checkpointer::wait_for_all(const std::function<bool()>& done) {
  for (std::int32_t all = 0; all == 0;) {
    if (thread_ == nullptr) step();
    all = done() ? 1 : 0;
    if (all == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    communicator_.allreduce(Tensor(std::span(&all, 1)), ReduceOp::minimum);
  }
}

}  // namespace ronda
