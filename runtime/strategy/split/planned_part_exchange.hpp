#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/layers/pass.hpp>

namespace ronda {

/// A strategy's PartExchange: a collective for each message that its operations have, planned beforehand, so that a
/// pass allocates nothing. They take turns in one piece of memory, which a node's ranks share: numbers are copied into
/// it, and the result out of it.
class PlannedPartExchange final : public PartExchange {
 public:
  /// Collective.
  /// @param group     the ranks that have the parts, by part
  /// @param messages  each once; the same on all these ranks
  PlannedPartExchange(Communicator group, std::span<const PartMessages> messages);
  void add_up(std::span<float> numbers) override;
  void gather(std::span<const float> mine, std::span<float> all, std::span<const std::size_t> widths) override;

  struct Costs {
    std::uint64_t bytes = 0;  ///< of the numbers that were added up or gathered: whole ones, whatever way they took
    double seconds = 0;       ///< that this rank spent in here
  };
  /// So far.
  [[nodiscard]] const Costs& costs() const noexcept { return costs_; }
  /// Whether the following exchanges count.
  void count_costs(bool counts) noexcept { counts_ = counts; }
  [[nodiscard]] std::size_t memory() const noexcept;
  /// For the plan: what is told, and by which algorithm, on which the bits depend.
  [[nodiscard]] std::vector<std::string> describe() const;

 private:
  struct Planned {
    PartMessages message;
    std::unique_ptr<Collective> collective;
  };
  [[nodiscard]] Costs& counted() noexcept { return counts_ ? costs_ : uncounted_; }
  [[nodiscard]] std::span<float> staged(std::size_t count) const;
  [[nodiscard]] Planned& planned(std::size_t sums, std::size_t rows, std::span<const std::size_t> widths);

  Communicator group_;
  Buffer staging_;
  std::vector<Planned> planned_;
  Costs costs_, uncounted_;
  bool counts_ = true;
};

}  // namespace ronda
