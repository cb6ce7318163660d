#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/host/planning/calibration.hpp>
#include <ronda/collectives/host/wire_format.hpp>
#include <ronda/collectives/tuning/choice.hpp>

namespace ronda {

/// How an allreduce of tensors in the host's memory is done: where do they lie, what is each done by, what memory does
/// that take? Every function is collective unless it says otherwise; all ranks give the same, and throw alike.
class AllreducePlanner {
 public:
  /// @param members, agreement, links, memory  outlive this object
  AllreducePlanner(Members& members, Agreement& agreement, Links& links, NodeMemory& memory)
      : members_(members),
        agreement_(agreement),
        links_(links),
        memory_(memory),
        calibration_(members, agreement, links, memory) {}

  /// What each tensor is reduced by, the exact ones last.
  struct Plan {
    std::vector<std::unique_ptr<Algorithm>> algorithms;         ///< by tensor; null: nothing to do
    AllreduceAlgorithm mostly = AllreduceAlgorithm::automatic;  ///< the largest is done by
    Compression compression = Compression::none;
    std::optional<double> seconds = {};
    DType dtype = DType::float32;
    std::size_t count = 0, bytes = 0;
  };
  /// @param often  worth trying what is nearly equal
  [[nodiscard]] Plan make(const AllreduceSpec& spec, bool often);
  [[nodiscard]] std::unique_ptr<Collective> plan(const AllreduceSpec& spec, bool often);

  /// Measured now, if they are not known.
  const LinkCosts& link_costs();
  [[nodiscard]] const std::optional<LinkCosts>& known_costs() const noexcept { return costs_; }  ///< not collective
  /// Not collective.
  void use(LinkCosts costs) {
    costs_ = std::move(costs);
    tries_ = true;
  }
  /// Not collective. Of the group that this one is split off from. Where they are known, formulas alone choose: what is
  /// tried is known to nobody who keeps costs, so that equal runs would choose differently.
  void inherit(const std::optional<LinkCosts>& costs) {
    tries_ = !costs;
    costs_.reset();
    if (costs) costs_.emplace(*costs).trials.clear();
  }

 private:
  [[nodiscard]] std::vector<AllreduceChoice> choose(const AllreduceSpec& spec, std::span<const Elements> tensors,
                                                    std::span<const NodeMemory::Site> sites, bool often);
  [[nodiscard]] std::unique_ptr<Algorithm> make_algorithm(AllreduceAlgorithm algorithm, const Reduction& reduction,
                                                          const Elements& elements, NodeCopies copies,
                                                          const Wire& wire);
  void rehearse(const AllreduceTask& task);
  [[nodiscard]] double try_out(const AllreduceChoice& choice, const Buffer& memory);

  Members& members_;
  Agreement& agreement_;
  Links& links_;
  NodeMemory& memory_;
  Calibration calibration_;
  std::optional<LinkCosts> costs_;  ///< the same on all ranks
  bool tries_ = true;               ///< what formulas have as nearly equal
};

}  // namespace ronda
