#pragma once
#include <cstdint>
#include <vector>

#include <ronda/layers/loss.hpp>

namespace ronda {

/// With PyTorch's names and defaults.
struct CrossEntropyOptions {
  std::vector<float> weight = {};    ///< of each class, at least 0; empty: 1 each
  std::int32_t ignore_index = -100;  ///< the label of rows that count nothing
  double label_smoothing = 0;        ///< in [0, 1)
};

/// −log softmax(x)[label]: PyTorch's CrossEntropyLoss, with the classes as the last axis. Outputs are (N, classes) with
/// labels int32 (N); or (N, T, classes) with labels (N, T), as of a language model; or with more axes, likewise.
/// Computed in float32. With label smoothing ε the target is (1−ε) on the label and ε/classes everywhere (Szegedy et
/// al., CVPR 2016). The exponentials are taken of x − max(x), so no finite input overflows; sums over rows are float64.
///
/// Targets may also be probabilities, float32 of the outputs' shape, as mixup makes them: −Σ t_c log softmax(x)_c, on
/// the processor alone. Then a row counts with the weight of its sample, and the accuracy is about its likeliest class.
///
/// The mean is over rows, each with the weight of its sample times that of its label's class; a row whose label is
/// `ignore_index` has weight 0. So it is PyTorch's weighted mean, taken once over all ranks: the sum of the weighted
/// losses over the sum of these weights.
class SoftmaxCrossEntropy final : public Loss {
 public:
  /// Throws InputError where `label_smoothing` is not in [0, 1), or a weight is below 0.
  explicit SoftmaxCrossEntropy(double label_smoothing = 0);
  explicit SoftmaxCrossEntropy(CrossEntropyOptions options);

  /// With weights of classes, on the processor alone.
  [[nodiscard]] bool runs_on_any_device() const noexcept override { return spec_.weights.empty(); }
  /// The share of rows whose largest output is the label's; rows count with their weights, as in the loss.
  [[nodiscard]] Metric metric() const override { return {"accuracy", true}; }
  /// Throws InputError for outputs of another rank, or another number of classes than weights. Its `run` throws
  /// InputError for targets that are neither, and for a label outside [0, classes) in a row that counts; a GPU, which
  /// cannot throw, makes the loss NaN for the latter.
  [[nodiscard]] std::unique_ptr<LossOperation> make(const TensorDesc& outputs, Primitives& primitives) const override;

 private:
  CrossEntropySpec spec_;
};

}  // namespace ronda
