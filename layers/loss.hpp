#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <ronda/core/error.hpp>
#include <ronda/core/metric.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/layers/pass.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda {

/// A loss function: compares outputs with targets. It holds no memory, so one object may serve several models.
class Loss {
 public:
  virtual ~Loss() = default;

  /// Whether it uses only the primitives, and so runs on every device that they support. A loss that accesses elements
  /// itself runs only on the processor.
  [[nodiscard]] virtual bool runs_on_any_device() const noexcept { return false; }

  /// The metric that `run` also computes; none by default.
  [[nodiscard]] virtual Metric metric() const { return {}; }

  /// Makes the loss operation for outputs of this description. Its `run` adds the weighted sums of losses, weights and
  /// metrics to `pass.control`, and writes the gradient of (loss sum × pass.loss_scale × *pass.more_scale) with respect
  /// to the outputs. Sums, not means: the optimizer divides once, by the sum over all ranks. Throws InputError for
  /// outputs that the loss does not accept.
  /// @param outputs  plain; float32 on the processor, the primitives' type on other devices
  [[nodiscard]] virtual std::unique_ptr<LossOperation> make(const TensorDesc& outputs,
                                                            Primitives& primitives) const = 0;
};

/// The sums that one row of outputs adds to StepControl.
struct RowSums {
  double loss = 0, weight = 0, metric = 0;
};

[[nodiscard]] constexpr std::size_t bytes_of_row_sums(std::size_t rows) noexcept { return rows * sizeof(RowSums); }

/// Calls `row(n)`, which returns RowSums, for each row on the stream's threads, and adds them to `pass.control` in the
/// order of the rows: the sums do not depend on the number of threads.
/// @param scratch  bytes_of_row_sums(rows)
/// @param width    elements of a row; few elements use fewer threads
/// @param row      must not throw
template <class Row>
void add_rows(std::size_t rows, std::size_t width, std::byte* scratch, const Pass& pass, Row&& row) {
  constexpr std::size_t least_elements = 16384;  // per thread
  const std::span sums(reinterpret_cast<RowSums*>(scratch), rows);
  const std::size_t least_rows = std::max<std::size_t>(least_elements / std::max<std::size_t>(width, 1), 1);
  parallel_for(
      pass.stream.threads(), rows,
      [&](Range range) {
        for (std::size_t n = range.begin; n < range.end; ++n) sums[n] = row(n);
      },
      least_rows);
  for (const RowSums& sum : sums) {
    pass.control->loss += sum.loss;
    pass.control->weight += sum.weight;
    pass.control->metric += sum.metric;
  }
}

/// A label that is not the index of a class. Trainer adds the sample to the message.
class LabelError : public InputError {
 public:
  LabelError(std::int32_t label, std::size_t classes)
      : InputError("a label of " + std::to_string(label) + " among " + std::to_string(classes) +
                   " classes: labels count from 0, so the largest is " + std::to_string(classes - 1)),
        label_(label) {}

  [[nodiscard]] std::int32_t label() const noexcept { return label_; }

 private:
  std::int32_t label_;
};

}  // namespace ronda
