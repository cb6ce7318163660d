#include <ronda/core/error.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/checkpoint_writer.hpp>
#include <ronda/runtime/io/atomic_file.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace ronda {
namespace {

namespace fs = std::filesystem;

std::string part_name(int rank) { return "part-" + std::to_string(rank) + ".safetensors"; }
fs::path record_of(const fs::path& folder, int rank) { return folder / ("part-" + std::to_string(rank) + ".json"); }

}  // namespace

CheckpointWriter::CheckpointWriter(fs::path directory, std::size_t keep, std::string token, int rank, Faults faults,
                                   FolderLock* lock, Storage& storage)
    : directory_(std::move(directory)),
      keep_(keep),
      token_(std::move(token)),
      rank_(rank),
      faults_(std::move(faults)),
      lock_(lock),
      storage_(storage) {}

fs::path CheckpointWriter::partial(std::uint64_t step) const {
  return directory_ / (".step-" + std::to_string(step) + "." + token_ + ".partial");
}

template <class Body>
void CheckpointWriter::start(Work& work, Body body) {
  work.outcome.store(Outcome::running, std::memory_order_relaxed);
  work_.submit([&work, body = std::move(body)] {
    try {
      body();
      work.outcome.store(Outcome::done, std::memory_order_release);
    } catch (const std::exception& error) {
      work.failure = error.what();
      work.lacks_room = dynamic_cast<const NoRoomError*>(&error) != nullptr;
      work.outcome.store(Outcome::failed, std::memory_order_release);
    }
  });
}

void CheckpointWriter::write_part(const Snapshot& snapshot, std::uint64_t step) {
  start(part_, [this, &snapshot, step] { write(snapshot, step); });
}

void CheckpointWriter::write(const Snapshot& snapshot, std::uint64_t step) {
  const fs::path folder = partial(step), path = folder / part_name(rank_);
  if (faults_.happens(FaultKind::fail_write, step))
    throw ResourceError("cannot write " + path.string() + ": No space left on device (injected)");
  if (lock_ != nullptr) lock_->renew();
  const std::error_code error = storage_.make_folder(folder);  // by the first rank; again if somebody has removed it
  const std::string failure = "cannot create the folder " + folder.string() + ": " + error.message();
  if (error && is_no_room(error.value())) throw NoRoomError(failure);
  if (error) throw ResourceError(failure);
  CheckpointPart part{.file = part_name(rank_),
                      .sum = write_safetensors(path, snapshot.tensors(), {}, storage_),
                      .tensors = {},
                      .per_rank = {}};
  if (faults_.happens(FaultKind::kill_write, step)) {
    fs::resize_file(path, part.sum.bytes / 2);
    die_at_once();
  }
  for (const auto& state : snapshot.states())
    (state.scope == Scope::replicated || state.scope == Scope::sharded ? part.tensors : part.per_rank)
        .push_back(state.name);
  ronda::write_part(record_of(folder, rank_), part, storage_);
}

void CheckpointWriter::make_room(std::uint64_t step) {
  if (rank_ > 0) return part_.outcome.store(Outcome::done, std::memory_order_relaxed);
  start(part_, [this, folder = partial(step)] {
    removed_.clear();
    static_cast<void>(storage_.remove(folder));
    if (!remove_one()) throw ResourceError("no checkpoint can be removed in " + directory_.string());
  });
}

/// From now on keeps as many checkpoints as are left: these fit on the disk with one more being written.
bool CheckpointWriter::remove_one() {
  const auto removed = remove_oldest(directory_, storage_);
  if (!removed) return false;
  removed_.push_back(*removed);
  keep_ = std::clamp<std::size_t>(list_checkpoints(directory_, storage_).size(), 1, keep_);
  return true;
}

void CheckpointWriter::publish(CheckpointManifest manifest) {
  auto shared = std::make_shared<CheckpointManifest>(std::move(manifest));
  start(publication_, [this, shared] { complete(*shared); });
}

void CheckpointWriter::write_with_room(const CheckpointManifest& manifest) {
  for (;;) try {
      return write_manifest(manifest_of(partial(manifest.step)), manifest, storage_);
    } catch (const NoRoomError&) {
      if (!remove_one()) throw;
    }
}

void CheckpointWriter::remove_record(const fs::path& record) {
  if (const std::error_code error = storage_.remove(record))
    throw ResourceError("cannot remove " + record.string() + ": " + error.message());
}

void CheckpointWriter::complete(CheckpointManifest& manifest) {
  removed_.clear();
  const fs::path folder = partial(manifest.step);
  try {
    for (int rank = 0; rank < manifest.ranks; ++rank)
      manifest.parts.push_back(read_part(record_of(folder, rank), storage_));
    for (int rank = 0; rank < manifest.ranks; ++rank) remove_record(record_of(folder, rank));
    write_with_room(manifest);
    if (faults_.happens(FaultKind::kill_rename, manifest.step)) die_at_once();
    publish_checkpoint(folder, manifest.step, storage_);
  } catch (const std::exception&) {
    static_cast<void>(storage_.remove(folder));
    throw;
  }
  try {
    set_aside_ = set_aside_after(directory_, manifest.step, storage_);
  } catch (const Error&) {  // then they stay: too many are better than none
    set_aside_.clear();
  }
  keep_newest(directory_, manifest.step, keep_, storage_);
}

void CheckpointWriter::discard(std::uint64_t step) {
  work_.submit([this, folder = partial(step)] { static_cast<void>(storage_.remove(folder)); });
}

}  // namespace ronda
