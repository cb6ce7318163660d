#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/watch/record.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/stream.hpp>

namespace ronda {

/// What a spec is looked through for.
struct SpecContext {
  int rank = 0, size = 1;
  std::optional<Device> device = {};  ///< this rank's, if the group knows of one
};

/// Looks through what this rank gives, fills in the counts that were left out, and returns what all ranks must give
/// alike, as a text. Throws LogicError or InputError for what cannot be.
[[nodiscard]] std::string complete(AllreduceSpec& spec, const SpecContext& context);
[[nodiscard]] std::string complete(BroadcastSpec& spec, const SpecContext& context);
[[nodiscard]] std::string complete(ReduceSpec& spec, const SpecContext& context);
[[nodiscard]] std::string complete(ReduceScatterSpec& spec, const SpecContext& context);
[[nodiscard]] std::string complete(AllgatherSpec& spec, const SpecContext& context);
[[nodiscard]] std::string complete(GatherSpec& spec, const SpecContext& context);
[[nodiscard]] std::string complete(ScatterSpec& spec, const SpecContext& context);
[[nodiscard]] std::string complete(AlltoallSpec& spec, const SpecContext& context);
[[nodiscard]] std::string complete(SendSpec& spec, const SpecContext& context);
[[nodiscard]] std::string complete(ReceiveSpec& spec, const SpecContext& context);
[[nodiscard]] std::string complete(SparseAllreduceSpec& spec, const SpecContext& context);

/// `mine` can be copied by the processor to this rank's part of `all`, or from it. Throws LogicError, InputError.
/// @param counts  complete
void require_part(const Tensor& mine, const Tensor& all, const std::vector<std::size_t>& counts,
                  const SpecContext& context, const std::string& label);
/// Throws InputError for a tensor of elements without memory.
void require_memory(const Tensor& tensor, const std::string& label);

/// The tensors of a complete spec, in memory or on a device.
[[nodiscard]] std::vector<Tensor> tensors_of(const CollectiveSpec& spec);
/// Whether the tensors of a complete spec are on this rank's device.
[[nodiscard]] bool is_on_device(const CollectiveSpec& spec);
[[nodiscard]] const std::string& label_of(const CollectiveSpec& spec);

/// A collective's description in records, with all ranks' counts. Specs are complete.
[[nodiscard]] Description describe(const BroadcastSpec& spec);
[[nodiscard]] Description describe(const ReduceSpec& spec);
[[nodiscard]] Description describe(const ReduceScatterSpec& spec);
[[nodiscard]] Description describe(const AllgatherSpec& spec);
[[nodiscard]] Description describe(const GatherSpec& spec);
[[nodiscard]] Description describe(const ScatterSpec& spec);
[[nodiscard]] Description describe(const AlltoallSpec& spec);
[[nodiscard]] Description describe(const SparseAllreduceSpec& spec);

/// The parts of a whole, in elements, by rank.
[[nodiscard]] std::vector<Range> ranges_of(const std::vector<std::size_t>& counts);

}  // namespace ronda
