#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/layers/initializer.hpp>
#include <ronda/runtime/strategy/parts/model_partition.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

namespace ronda {

/// The values of the whole model on a rank that computes a part of it, for files, hashes and hooks. A parameter that
/// the rank has whole is the replica's own tensor. The rank keeps copies of the others: those of another part in its
/// owner's layout, and those of which it has a slice row-major.
///
/// `gather` brings the copies up to date; `spread` writes slices back to the replica. Both include the average of the
/// values, if one is kept.
class WholeModel {
 public:
  /// Allocates the copies. Throws ResourceError.
  /// @param part           this rank's
  /// @param keeps_average  the replica keeps an average of its values
  WholeModel(ModelPartition partition, std::size_t part, bool keeps_average);

  /// Bytes of the copies of values; the average takes as many.
  [[nodiscard]] std::size_t bytes() const noexcept { return values_.bytes(); }
  [[nodiscard]] const ModelPartition& partition() const noexcept { return partition_; }
  /// Call it when the replica of this rank's part is bound. The replica must outlive this object.
  void bind(const Replica& replica);
  /// Draws the initial values, which are those of a model on one rank. The averages do not change.
  void initialize(Initializer usual, std::uint64_t seed);

  /// By ParameterId of the whole model. Copies have no gradient.
  [[nodiscard]] std::span<const Parameter> parameters() const noexcept { return parameters_; }
  /// The average of a parameter, in the layout of its values; empty if none is kept.
  [[nodiscard]] Tensor average_of(const Parameter& parameter) const;
  void visit_parameters(StateVisitor& visitor) const;
  /// Visits `conv1.weight.ema`, if an average is kept.
  void visit_average(StateVisitor& visitor) const;
  /// Visits the layer states, by StateId of the whole model.
  void visit_layer_states(StateVisitor& visitor) const;

  /// Sets the average of the copies to their values. Not for the replica's own.
  void restart_average() const;
  /// Exchanges the copies and their average. Not for the replica's own.
  void swap_average() const;

  /// Collective over the ranks of a group, by part.
  void gather(Communicator& group) const;
  /// Not collective.
  void spread() const;
  /// Copies rank 0's values to all ranks and spreads them. Collective over all ranks, each up to date.
  void broadcast(Communicator& all) const;

 private:
  [[nodiscard]] bool is_copied(std::size_t parameter) const {
    return !partition_.parameters[parameter].whole_in(part_);
  }
  void gather_slices(Communicator& group, std::size_t parameter, const Tensor& whole, const Tensor& mine) const;
  /// Calls body(copy of the whole, the replica's slice) for the values and the average of a sliced parameter.
  template <class Body>
  void for_each_sliced(std::size_t parameter, Body&& body) const;

  ModelPartition partition_;
  std::size_t part_;
  const Replica* replica_ = nullptr;
  Buffer values_, average_;  ///< copies
  std::vector<Parameter> parameters_;
  std::vector<const Parameter*> in_replica_;  ///< by ParameterId of the whole model; null: of another part
  std::vector<Buffer> copied_states_;
  std::vector<State> states_;
};

}  // namespace ronda
