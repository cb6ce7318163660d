#include <ronda/collectives/phase.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/restore.hpp>
#include <ronda/runtime/checkpoint/snapshot.hpp>
#include <ronda/runtime/checkpoint/state_copy.hpp>
#include <ronda/runtime/io/safetensors.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

namespace ronda {
namespace {

namespace fs = std::filesystem;

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// The states that all ranks have alike, or those that each has for itself, by name; what is left in `wanted` in the
/// end was not in the checkpoint.
class Setter {
 public:
  /// @param pieces  of states that all ranks have together
  Setter(std::span<const State> states, bool alike, std::span<const StatePiece> pieces = {}) : alike_(alike) {
    for (const auto& piece : pieces) pieces_.emplace(piece.whole.name, &piece);
    for (const auto& state : states)
      if ((state.scope == Scope::replicated) == alike && !is_counter(state)) wanted_.emplace(state.name, &state);
  }
  /// Whether any of them is still to be set.
  [[nodiscard]] bool wants(const std::vector<std::string>& names) const {
    return std::ranges::any_of(
        names, [this](const std::string& name) { return wanted_.contains(name) || pieces_.contains(name); });
  }
  /// Sets those of the part's tensors that `names` lists.
  void read(const fs::path& path, const std::vector<std::string>& names) {
    const std::set<std::string> ours(names.begin(), names.end());
    SafetensorsFile file(path);
    for (const auto& tensor : file.entries()) {
      if (!ours.contains(tensor.name)) continue;
      const auto state = wanted_.find(tensor.name);
      if (state == wanted_.end()) {
        if (!set_piece(path, file, tensor)) surplus_.insert(tensor.name);
        continue;
      }
      const bool fits = tensor.shape == state->second->tensor.shape();
      if (!fits && !alike_) {  // as what compression owes, under another algorithm
        reshaped_.insert(tensor.name);
        wanted_.erase(state);
        continue;
      }
      if (!fits) refuse_shape(path, tensor, state->second->tensor.shape());
      from_file(*state->second, file.read(tensor));
      wanted_.erase(state);
    }
  }
  void check(const fs::path& folder, bool partly, std::vector<std::string>& notes) const {
    std::set<std::string> missing;
    for (const auto& [name, ignored] : wanted_) missing.insert(name);
    for (const auto& [name, ignored] : pieces_) missing.insert(name);
    if (!missing.empty()) note(folder.string() + " has no " + joined(missing), partly, notes);
    if (!reshaped_.empty())
      note(folder.string() + " has " + joined(reshaped_) + " in another shape, which is dropped", partly, notes);
    if (!surplus_.empty())
      note(folder.string() + " has " + joined(surplus_) + ", which this training has not", partly, notes);
  }

 private:
  /// This rank's piece of a state that is divided; false where the tensor is none.
  bool set_piece(const fs::path& path, SafetensorsFile& file, const SafetensorsFile::Entry& tensor) {
    const auto found = pieces_.find(tensor.name);
    if (found == pieces_.end()) return false;
    const StatePiece& piece = *found->second;
    if (tensor.shape != piece.whole.tensor.shape()) refuse_shape(path, tensor, piece.whole.tensor.shape());
    if (piece.count > 0) from_file(piece, file.read(tensor));
    pieces_.erase(found);
    return true;
  }
  [[noreturn]] static void refuse_shape(const fs::path& path, const SafetensorsFile::Entry& tensor,
                                        const Shape& shape) {
    throw InputError(path.string() + ": " + tensor.name + " has shape " + tensor.shape.text() +
                     ", this training's has " + shape.text());
  }
  static void note(const std::string& text, bool partly, std::vector<std::string>& notes) {
    if (!partly) throw InputError(text + "; was it written by another model?");
    notes.push_back(text);
  }

  std::map<std::string, const State*> wanted_;
  std::map<std::string, const StatePiece*> pieces_;
  std::set<std::string> surplus_, reshaped_;
  bool alike_;
};

/// One that the checkpoint does not have counts from where it is.
void set_counter(const State& state, const CheckpointManifest& manifest) {
  const auto found = manifest.counters.find(state.name);
  const auto numbers = state.tensor.as<std::int64_t>();
  if (found != manifest.counters.end() && found->second.size() == numbers.size())
    std::ranges::copy(found->second, numbers.begin());
}

std::vector<State> averaged(std::span<const State> states) {
  std::vector<State> some;
  std::ranges::copy_if(states, std::back_inserter(some),
                       [](const State& state) { return state.scope == Scope::averaged && !is_counter(state); });
  return some;
}

/// Whether the checkpoint's ranks kept for themselves what is not averaged here.
bool any_lost(const CheckpointManifest& manifest, std::span<const State> averaged) {
  const auto lost = [&](const std::string& name) {
    return std::ranges::find(averaged, name, &State::name) == averaged.end();
  };
  return std::ranges::any_of(manifest.parts,
                             [&](const CheckpointPart& part) { return std::ranges::any_of(part.per_rank, lost); });
}

/// The means over the ranks that wrote the checkpoint; what it does not have, or in another shape, stays.
void set_means(std::span<const State> averaged, const fs::path& folder, const CheckpointManifest& manifest) {
  std::map<std::string, std::vector<double>> sums;
  std::map<std::string, int> ranks;
  for (const auto& part : manifest.parts) {
    if (part.per_rank.empty()) continue;
    for (const auto& tensor : read_safetensors(folder / part.file).tensors) {
      const auto state = std::ranges::find(averaged, tensor.name, &State::name);
      if (state == averaged.end() || state->tensor.shape() != tensor.shape) continue;
      auto& sum = sums[tensor.name];
      sum.resize(tensor.values.size());
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += tensor.values[i];
      ++ranks[tensor.name];
    }
  }
  for (const auto& state : averaged) {
    const auto sum = sums.find(state.name);
    if (sum == sums.end()) continue;
    std::vector<float> means;
    for (const double number : sum->second) means.push_back(static_cast<float>(number / ranks[state.name]));
    from_file(state, means);
  }
}

/// Each rank but the first, which has read everything, reads its pieces.
void restore_pieces(const fs::path& folder, const CheckpointManifest& manifest, std::span<const StatePiece> pieces,
                    Communicator& communicator) {
  if (pieces.empty()) return;
  agree(communicator, [&] {
    if (communicator.rank() == 0) return;
    const Phase phase(communicator, Activity::reading, reading_limit(folder));
    std::vector<StatePiece> mine;
    std::ranges::copy_if(pieces, std::back_inserter(mine), [](const StatePiece& piece) { return piece.count > 0; });
    Setter own({}, true, mine);
    for (const auto& part : manifest.parts)
      if (own.wants(part.tensors)) own.read(folder / part.file, part.tensors);
  });
}

/// States of the host.
std::vector<std::string> restore_here(const fs::path& folder, const CheckpointManifest& manifest,
                                      std::span<const State> states, std::span<const StatePiece> pieces, bool partly,
                                      Communicator& communicator) {
  std::vector<std::string> notes;
  const double limit = reading_limit(folder);
  agree(communicator, [&] {
    if (communicator.rank() != 0) return;
    const Phase phase(communicator, Activity::reading, limit);
    Setter replicated(states, true, pieces);
    for (const auto& part : manifest.parts)
      if (!part.tensors.empty()) replicated.read(folder / part.file, part.tensors);
    replicated.check(folder, partly, notes);
  });
  for (const auto& state : states)
    if (is_counter(state))
      set_counter(state, manifest);
    else if (state.scope == Scope::replicated)
      broadcast_state(state, communicator);
  restore_pieces(folder, manifest, pieces, communicator);

  if (manifest.ranks != communicator.size()) {
    const auto means = averaged(states);
    agree(communicator, [&] {
      if (communicator.rank() != 0 || means.empty()) return;
      const Phase phase(communicator, Activity::reading, limit);
      set_means(means, folder, manifest);
    });
    for (const auto& state : means) broadcast_state(state, communicator);
    if (any_lost(manifest, means))
      notes.push_back("what the checkpoint's " + std::to_string(manifest.ranks) +
                      " ranks kept each for itself is dropped on " + std::to_string(communicator.size()));
    return notes;
  }
  agree(communicator, [&] {
    const Phase phase(communicator, Activity::reading, limit);
    const CheckpointPart& part = manifest.parts[static_cast<std::size_t>(communicator.rank())];
    Setter own(states, false);
    if (!part.per_rank.empty()) own.read(folder / part.file, part.per_rank);
    own.check(folder, true, notes);  // without it a training goes on, if not to the bit
  });
  return notes;
}

}  // namespace

void broadcast_state(const State& state, Communicator& communicator) {
  const std::int64_t count = state.tensor.desc().padded_count();
  communicator.broadcast(Tensor({Shape{count}, DType::float32, {}}, state.tensor.data()));
}

std::vector<std::string> restore(const fs::path& folder, const CheckpointManifest& manifest,
                                 std::span<const State> states, bool partly, Communicator communicator,
                                 const ComputeDevice& device, std::span<const StatePiece> pieces) {
  std::optional<StatesOnHost> here;
  agree(communicator, [&] {
    here.emplace(states, device);
    here->fetch();  // what the checkpoint does not have stays
    here->wait();
  });
  auto notes = restore_here(folder, manifest, here->states(), pieces, partly, communicator);
  agree(communicator, [&] {
    here->send();
    here->wait();
  });
  return notes;
}

}  // namespace ronda
