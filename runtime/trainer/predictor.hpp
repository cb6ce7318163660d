#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <ronda/core/function_ref.hpp>
#include <ronda/data/dataset.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/layers/program.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/strategy/step/strategy.hpp>

namespace ronda {

struct PredictorOptions {
  std::size_t batch_size = 64;  ///< samples per forward pass
  int threads = 1;
  /// Changes the graph before it is planned, as `with_int8` does; empty: no change.
  std::function<Graph(Graph)> rewrite = {};
};

/// Outputs of a model for some samples: (samples, …), plain float32.
struct Predictions {
  Shape shape;
  std::vector<float> values;
};

/// A trained model for inference on the CPU: no optimizer, loss or targets, and memory only for a forward pass. Not
/// collective: each rank predicts the samples that it passes.
///
/// Not thread-safe.
class Predictor {
 public:
  /// Parameters are zero until they are loaded or set.
  /// @param fields  fields of the data; only those that the model reads matter. Throws InputError if these or the
  ///                options do not fit.
  Predictor(const Layer& model, std::span<const Field> fields, const PredictorOptions& options = {});
  Predictor(const Predictor&) = delete;  // its program points to its memory

  /// Loads parameters and layer states from a file that `--save` or PyTorch wrote (safetensors). Throws InputError if
  /// they do not match this model.
  void load(const std::filesystem::path& path);
  /// Loads from tensors that were read earlier; `source` names their file in error messages.
  void load(std::span<const NamedTensor> tensors, const std::filesystem::path& source);
  /// Copies a strategy's parameters, or their average, and the layer states, as after Trainer::fit. Not collective,
  /// except for an average with .one_copy. Not for an int8 model.
  void take(Strategy& strategy);
  /// Returns parameters and layer states in file layout, for write_onnx.
  [[nodiscard]] std::vector<NamedTensor> tensors();
  /// The parameters, to be set individually; `from_file` converts plain numbers.
  [[nodiscard]] std::span<const Parameter> parameters() const noexcept { return program_.parameters(); }
  /// The program, whose layer states (such as running means) can be set individually; the names are the program's.
  [[nodiscard]] HostProgram& program() noexcept { return program_; }

  /// Returns the outputs of all samples, in their order. Throws InputError if the fields of `data` differ from those
  /// that the model was made for.
  [[nodiscard]] Predictions predict(const Dataset& data);
  /// Predicts batch by batch, for outputs that do not fit in memory together: calls `take` with the outputs (samples of
  /// the batch, …), plain float32, valid until `take` returns.
  void predict(const Dataset& data, FunctionRef<void(std::span<const float> outputs)> take);
  /// Shape of one sample's outputs.
  [[nodiscard]] Shape output_shape() { return program_.program().output().shape.without_batch(); }

 private:
  [[nodiscard]] std::vector<State> kept_states();

  PredictorOptions options_;
  std::unique_ptr<Primitives> primitives_;
  HostProgram program_;
};

/// Returns the outputs of `model`, with the parameters of a file, for all samples of `data`.
[[nodiscard]] Predictions predict(const Layer& model, const std::filesystem::path& parameters, const Dataset& data,
                                  const PredictorOptions& options = {});
/// The same with a strategy's parameters, or their average, as after Trainer::fit. Collective as Predictor::take.
[[nodiscard]] Predictions predict(const Layer& model, Strategy& strategy, const Dataset& data,
                                  const PredictorOptions& options = {});

}  // namespace ronda
