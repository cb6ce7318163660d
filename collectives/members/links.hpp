#pragma once
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/engine/planned_collective.hpp>
#include <ronda/collectives/members/agreement.hpp>

namespace ronda {

/// A group's channels for messages between two ranks.
using PairChannels = std::array<FabricChannel, 32>;

/// The ways by which the ranks of a group pass messages: each planned collective gets a transport with a channel of its
/// own, so that several can be in flight. All ranks ask for the same ones in the same order.
class Links {
 public:
  /// @param agreement  outlives this object
  Links(std::shared_ptr<Members> members, Agreement& agreement);

  /// Between all ranks. Collective when channels run out.
  [[nodiscard]] std::unique_ptr<Transport> across_all();
  /// Between the ranks that have this one's number on their nodes; null where some node has not so many.
  [[nodiscard]] std::unique_ptr<Transport> across_nodes();
  /// Between some ranks; those that take no part pass themselves alone. Collective when channels run out.
  [[nodiscard]] std::unique_ptr<Transport> across(const std::vector<int>& ranks);
  /// Between any two: each message uses one of the channels for pairs. Not collective.
  [[nodiscard]] std::unique_ptr<FabricTransport> between_two() const;
  [[nodiscard]] const std::shared_ptr<const PairChannels>& pair_channels() const noexcept { return pair_channels_; }
  /// The ranks that have the number `slice` on their nodes, by node; nobody where a node has not so many.
  [[nodiscard]] std::vector<int> owners_of_slice(int slice) const;
  /// Of the fabric, if it has some: throws InputError, on all ranks, if not. Collective.
  [[nodiscard]] FabricAllreduces& fabric_allreduces();

  /// What `make` makes. Where it throws on any rank all throw that, and take the same channels from then on.
  /// Collective.
  [[nodiscard]] std::unique_ptr<Collective> made_on_all(const std::string& label,
                                                        const std::function<std::unique_ptr<Collective>()>& make);
  /// A collective of these algorithms, which keeps the members alive. Not collective.
  [[nodiscard]] std::unique_ptr<PlannedCollective> planned(std::vector<std::unique_ptr<Algorithm>> algorithms,
                                                           std::string_view name, Description description,
                                                           Compression compression = Compression::none) const;
  [[nodiscard]] std::unique_ptr<PlannedCollective> planned(std::unique_ptr<Algorithm> algorithm, std::string_view name,
                                                           Description description) const;

 private:
  [[nodiscard]] std::unique_ptr<Transport> between(const std::vector<int>& ranks, FabricChannel channel) const;
  [[nodiscard]] FabricChannel next_channel();
  void renew_channels();

  std::shared_ptr<Members> members_;
  Agreement& agreement_;
  std::shared_ptr<const PairChannels> pair_channels_;
};

}  // namespace ronda
