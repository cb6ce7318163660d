#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <ronda/core/function_ref.hpp>
#include <ronda/data/dataset.hpp>
#include <ronda/layers/host_program.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/strategy/strategy.hpp>

namespace ronda {

struct PredictorOptions {
  std::size_t batch_size = 64;  ///< samples that are computed at once
  int threads = 1;
  /// Changes the graph before it is planned, as `with_int8` does; empty: nothing.
  std::function<Graph(Graph)> rewrite = {};
};

/// What a model gives for some samples: (samples, …), plain float32.
struct Predictions {
  Shape shape;
  std::vector<float> values;
};

/// A trained model that only computes: without an optimizer, a loss or targets, and with memory for a forward pass
/// alone. On the processor. Knows no ranks: each computes what it is given.
///
/// Not thread-safe.
class Predictor {
 public:
  /// Parameters are zero until they are loaded or set.
  /// @param fields  of the data; those that the model reads count. Throws InputError where they, or the options, do not
  /// fit.
  Predictor(const Layer& model, std::span<const Field> fields, const PredictorOptions& options = {});
  Predictor(const Predictor&) = delete;  // its program knows its memory

  /// Those of a file that `--save` or PyTorch wrote (safetensors), with what layers keep. Throws InputError where they
  /// are not this model's.
  void load(const std::filesystem::path& path);
  /// The same from tensors that were read before; `source` is where, for messages.
  void load(std::span<const NamedTensor> tensors, const std::filesystem::path& source);
  /// A strategy's, or their average, with what layers keep, as after Trainer::fit. Not collective, but for an average
  /// with .one_copy. Not for a model of int8.
  void take(Strategy& strategy);
  /// Parameters, and what layers keep, as files have them: for write_onnx.
  [[nodiscard]] std::vector<NamedTensor> tensors();
  /// To be set one by one; `from_file` brings plain numbers.
  [[nodiscard]] std::span<const Parameter> parameters() const noexcept { return program_.parameters(); }
  /// What layers keep, a running mean, to be set likewise; names are the program's.
  [[nodiscard]] HostProgram& program() noexcept { return program_; }

  /// Of all samples, in their order. Throws InputError for data with other fields than the model was made for.
  [[nodiscard]] Predictions predict(const Dataset& data);
  /// The same, batch by batch, for data whose outputs are not to be in memory together: calls `take` with outputs
  /// (samples of a batch, …), plain float32, which are valid until it returns.
  void predict(const Dataset& data, FunctionRef<void(std::span<const float> outputs)> take);
  /// Of the outputs of a sample.
  [[nodiscard]] Shape output_shape() { return program_.program().output().shape.without_batch(); }

 private:
  [[nodiscard]] std::vector<State> kept_states();

  PredictorOptions options_;
  std::unique_ptr<Primitives> primitives_;
  HostProgram program_;
};

/// The same in one call: the outputs of `model`, with the parameters of a file, for all samples of `data`.
[[nodiscard]] Predictions predict(const Layer& model, const std::filesystem::path& parameters, const Dataset& data,
                                  const PredictorOptions& options = {});
/// The same with a strategy's parameters, or their average, as after Trainer::fit. Collective as Predictor::take.
[[nodiscard]] Predictions predict(const Layer& model, Strategy& strategy, const Dataset& data,
                                  const PredictorOptions& options = {});

}  // namespace ronda
