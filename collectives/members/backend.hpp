#pragma once
#include <memory>

#include <ronda/collectives/collective.hpp>

namespace ronda {

/// What does the collectives of one kind of memory: the host's, or a device's by NCCL or through the host.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  virtual ~Backend() = default;

  /// Collective, but for a send and a receive. All ranks throw, or none.
  /// @param spec   looked through, complete and the same on all ranks: see `complete` in spec_check.hpp
  /// @param often  worth trying what is nearly equal
  [[nodiscard]] virtual std::unique_ptr<Collective> plan(const CollectiveSpec& spec, bool often) = 0;
};

}  // namespace ronda
