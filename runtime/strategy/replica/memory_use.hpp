#pragma once
#include <cstddef>
#include <string>

namespace ronda {

/// Memory that a plan needs on one rank, in bytes.
struct MemoryUse {
  std::size_t parameters = 0, gradients = 0, optimizer = 0;
  std::size_t activations = 0;  ///< kept from forward to backward, and gradients between layers; grows with the batch
  std::size_t workspace = 0;    ///< scratch of the primitives
  std::size_t data = 0;         ///< datasets on the device
  std::size_t exchange = 0;     ///< residuals of compression, message buffers, lists of rows

  [[nodiscard]] std::size_t total() const noexcept {
    return parameters + gradients + optimizer + activations + workspace + data + exchange;
  }
  /// `a rank needs 12.0 MiB: parameters 1.0 MiB, …`.
  [[nodiscard]] std::string text() const;
};

/// Throws InputError if `use` exceeds `limit`, with the batch (or the accumulation) that would fit.
/// @param rows  rows per micro-batch for which `use` was computed
void check_memory_limit(const MemoryUse& use, std::size_t limit, std::size_t rows, std::size_t micro_batches);

}  // namespace ronda
