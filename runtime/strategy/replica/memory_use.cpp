#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/replica/memory_use.hpp>

namespace ronda {

std::string MemoryUse::text() const {
  return "a rank needs " + human_bytes(total()) + ": parameters " + human_bytes(parameters) + ", gradients " +
         human_bytes(gradients) + ", optimizer " + human_bytes(optimizer) + ", activations " +
         human_bytes(activations) + ", workspace " + human_bytes(workspace) +
         (data > 0 ? ", data " + human_bytes(data) : "") + (exchange > 0 ? ", exchange " + human_bytes(exchange) : "");
}

void check_memory_limit(const MemoryUse& use, std::size_t limit, std::size_t rows, std::size_t micro_batches) {
  if (limit == 0 || use.total() <= limit) return;
  const std::string found = use.text() + "; the limit is " + human_bytes(limit);
  const std::size_t fixed = use.total() - use.activations - use.workspace;
  const std::size_t a_row = (use.activations + use.workspace + rows - 1) / rows;  // an upper bound: some of it is fixed
  const auto rows_beside = [&](std::size_t bytes) { return limit > bytes ? (limit - bytes) / a_row : 0; };
  const std::size_t fit = rows_beside(fixed);
  if (fit == 0)
    throw InputError(found + ". No batch fits beside parameters, gradients and optimizer (" + human_bytes(fixed) +
                     "); raise " + setting("memory_limit"));
  Message advice = ". A batch of " + std::to_string(fit) + " a rank fits (" + setting("batch_size", fit) + ")";
  // Several pieces are summed in gradients of their own.
  if (const std::size_t piece = rows_beside(fixed + (micro_batches == 1 ? use.gradients : 0)); piece > 0) {
    const std::string pieces = std::to_string((rows * micro_batches + piece - 1) / piece);
    advice += ", or the same batch in " + pieces + " pieces (" + setting("accumulate", pieces) + ")";
  }
  throw InputError(found + advice);
}

}  // namespace ronda
