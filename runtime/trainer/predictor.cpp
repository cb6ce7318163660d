#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/runtime/trainer/parameter_files.hpp>
#include <ronda/runtime/trainer/predictor.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace ronda {
namespace {

/// The number of threads that primitives are planned for, on this thread.
int set_threads(int threads) {
  if (threads < 1) throw InputError(setting("threads") + " is at least 1, not " + std::to_string(threads));
  use_threads(threads);
  return threads;
}

HostProgram planned(const Layer& model, std::span<const Field> fields, const PredictorOptions& options,
                    Primitives& primitives) {
  FirstPicker picker;
  Graph graph = build_graph(model, fields, options.batch_size);
  if (options.rewrite) graph = options.rewrite(std::move(graph));
  return {std::move(graph), primitives, picker, {.mode = Mode::evaluation}};
}

/// Sets parameters and states of a predictor to those of the same names.
class CopyByName final : public StateVisitor {
 public:
  explicit CopyByName(Predictor& predictor) : predictor_(predictor) {}
  void visit(const State& state) override {
    const auto parameter = std::ranges::find(predictor_.parameters(), state.name, &Parameter::name);
    if (parameter != predictor_.parameters().end()) return from_file(*parameter, to_file(state), parameter->value);
    const auto states = predictor_.program().program().states();
    const auto kept = std::ranges::find(states, state.name, &GraphState::name);
    if (kept != states.end())
      reorder(state.tensor, predictor_.program().states()[static_cast<std::size_t>(kept - states.begin())]);
  }

 private:
  Predictor& predictor_;
};

}  // namespace

Predictor::Predictor(const Layer& model, std::span<const Field> fields, const PredictorOptions& options)
    : options_(options),
      primitives_(make_onednn_primitives(set_threads(options.threads))),
      program_(planned(model, fields, options, *primitives_)) {}

std::vector<State> Predictor::kept_states() {
  std::vector<State> states;
  const auto kept = program_.program().states();
  for (std::size_t i = 0; i < kept.size(); ++i) states.push_back({kept[i].name, program_.states()[i], kept[i].scope});
  return states;
}

void Predictor::load(const std::filesystem::path& path) { load_parameters(path, program_.parameters(), kept_states()); }

void Predictor::load(std::span<const NamedTensor> tensors, const std::filesystem::path& source) {
  load_parameters(tensors, source, program_.parameters(), kept_states());
}

std::vector<NamedTensor> Predictor::tensors() { return tensors_of(program_.parameters(), kept_states()); }

void Predictor::take(Strategy& strategy) {
  CopyByName copy(*this);
  strategy.state().with_average([&] { strategy.visit(copy); });
}

Predictions Predictor::predict(const Dataset& data) {
  Predictions all;
  const Shape sample = output_shape();
  all.values.reserve(data.size() * static_cast<std::size_t>(sample.count()));
  predict(data,
          [&](std::span<const float> outputs) { all.values.insert(all.values.end(), outputs.begin(), outputs.end()); });
  std::vector<std::int64_t> extents{static_cast<std::int64_t>(data.size())};
  extents.insert(extents.end(), sample.begin(), sample.end());
  all.shape = Shape(extents);
  return all;
}

void Predictor::predict(const Dataset& data, FunctionRef<void(std::span<const float> outputs)> take) {
  use_threads(options_.threads);
  Program& program = program_.program();
  Batch batch(data.fields(), options_.batch_size);
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < program.inputs().size(); ++i) {
    inputs.push_back(batch.field(program.inputs()[i].field));
    if (inputs.back().desc() != program.input_desc(i))
      throw InputError("the model was made for " + program.input_desc(i).text() + ", the data has " +
                       inputs.back().desc().text());
  }
  CpuStream stream(options_.threads);
  const Pass pass{.stream = stream, .mode = Mode::evaluation, .weights = &batch.weights(), .on_ready = {}};
  const auto columns = static_cast<std::size_t>(output_shape().count());
  std::vector<std::uint64_t> samples(options_.batch_size);
  for (std::size_t first = 0; first < data.size(); first += samples.size()) {
    const std::size_t real = std::min(samples.size(), data.size() - first);
    for (std::size_t row = 0; row < samples.size(); ++row) samples[row] = first + std::min(row, real - 1);
    batch.set_real(real);
    data.read({.samples = samples}, batch);
    batch.clear_padding_weights();
    take({program.forward(inputs, pass).pointer<float>(), real * columns});
  }
}

Predictions predict(const Layer& model, const std::filesystem::path& parameters, const Dataset& data,
                    const PredictorOptions& options) {
  Predictor predictor(model, data.fields(), options);
  predictor.load(parameters);
  return predictor.predict(data);
}

Predictions predict(const Layer& model, Strategy& strategy, const Dataset& data, const PredictorOptions& options) {
  Predictor predictor(model, data.fields(), options);
  predictor.take(strategy);
  return predictor.predict(data);
}

}  // namespace ronda
