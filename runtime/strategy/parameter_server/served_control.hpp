#pragma once
#include <memory>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/runtime/key_value/roles.hpp>
#include <ronda/runtime/strategy/parameter_server/message_window.hpp>

namespace ronda {

/// A step's sums and flags, which go the way of gradients: from the workers to the first server, which adds them up in
/// the order of ranks, to the other servers, and back to the workers. Sent before gradients and values, they do not
/// wait behind these for a link.
class ServedControl {
 public:
  /// Collective over all ranks.
  /// @param alike  those of this rank's role
  ServedControl(Communicator ranks, Communicator alike, const Roles& roles);

  /// This rank's own, to write before `start`; all ranks' when `move_on` says so.
  [[nodiscard]] StepControl& control() noexcept { return control_; }
  /// The sums are this step's. Allocates nothing.
  void start(Stream& stream);
  /// Whether all ranks' sums are here.
  [[nodiscard]] bool move_on(Stream& stream);

 private:
  enum class Stage : std::uint8_t { gathering, telling_servers, done };
  [[nodiscard]] bool is_server() const noexcept { return roles_.is_server(ranks_.rank()); }
  [[nodiscard]] bool leads() const noexcept { return ranks_.rank() == leader(); }
  [[nodiscard]] int leader() const noexcept { return roles_.rank_of_server(0); }
  void plan_leader();
  void add_up(Stream& stream);

  Communicator ranks_;
  Roles roles_;
  StepControl control_, told_;           ///< told_: as a worker sends it, as servers add it up
  std::vector<StepControl> of_workers_;  ///< the leader's
  Stage stage_ = Stage::done;
  std::unique_ptr<Collective> send_, receive_;         ///< a worker's
  std::unique_ptr<MessageWindow> receives_, answers_;  ///< the leader's
  std::unique_ptr<Collective> among_servers_;          ///< null where there is one
  Event sent_, received_;
};

}  // namespace ronda
