#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/runtime/trainer/parameter_files.hpp>
#include <ronda/runtime/trainer/predictor.hpp>

#include <algorithm>

namespace ronda {
namespace {

Program planned(const Layer& model, std::span<const Field> fields, std::size_t rows, Primitives& primitives) {
  FirstPicker picker;
  return {build_graph(model, fields, rows), nullptr, primitives, picker, {.mode = Mode::evaluation}};
}

/// Sets parameters and states of a predictor to those of the same names.
class CopyByName final : public StateVisitor {
 public:
  explicit CopyByName(Predictor& predictor) : predictor_(predictor) {}
  void visit(const State& state) override {
    const auto parameter = std::ranges::find(predictor_.parameters(), state.name, &Parameter::name);
    if (parameter != predictor_.parameters().end()) return from_file(*parameter, to_file(state), parameter->value);
    const auto kept = std::ranges::find(predictor_.states(), state.name, &State::name);
    if (kept != predictor_.states().end()) reorder(state.tensor, kept->tensor);
  }

 private:
  Predictor& predictor_;
};

}  // namespace

Predictor::Predictor(const Layer& model, std::span<const Field> fields, const PredictorOptions& options)
    : options_(options),
      primitives_(make_onednn_primitives(options.threads)),
      program_(planned(model, fields, options.batch_size, *primitives_)) {
  for (const ParameterRequest& request : program_.parameters())
    parameters_.push_back({.id = ParameterId{static_cast<std::uint32_t>(parameters_.size())},
                           .name = request.name,
                           .value = tensor(request.desc),
                           .gradient = {},
                           .master = std::nullopt,
                           .flattened = request.flattened});
  std::vector<Tensor> kept;
  for (const GraphState& state : program_.states()) {
    kept.push_back(tensor({state.shape, state.dtype, {}}));
    if (state.dtype == DType::float32) std::ranges::fill(kept.back().as<float>(), state.initial);
    states_.push_back({state.name, kept.back(), state.scope});
  }
  program_.bind(parameters_, kept, memory_.emplace_back(Buffer::host(program_.memory().bytes)).data());
}

Tensor Predictor::tensor(const TensorDesc& desc) {
  return {desc, memory_.emplace_back(Buffer::host(desc.bytes())).data()};
}

void Predictor::load(const std::filesystem::path& path) { load_parameters(path, parameters_); }

Predictions Predictor::predict(const Dataset& data) {
  use_threads(options_.threads);
  Batch batch(data.fields(), options_.batch_size);
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < program_.inputs().size(); ++i) {
    inputs.push_back(batch.field(program_.inputs()[i].field));
    if (inputs.back().desc() != program_.input_desc(i))
      throw InputError("the model was made for " + program_.input_desc(i).text() + ", the data has " +
                       inputs.back().desc().text());
  }
  CpuStream stream(options_.threads);
  const Pass pass{.stream = stream, .mode = Mode::evaluation, .on_ready = {}};
  const Shape sample = program_.output().shape.without_batch();
  const auto columns = static_cast<std::size_t>(sample.count());
  Predictions all;
  all.values.reserve(data.size() * columns);
  std::vector<std::uint64_t> samples(options_.batch_size);
  for (std::size_t first = 0; first < data.size(); first += samples.size()) {
    const std::size_t real = std::min(samples.size(), data.size() - first);
    for (std::size_t row = 0; row < samples.size(); ++row) samples[row] = first + std::min(row, real - 1);
    data.read({.samples = samples}, batch);
    const float* outputs = program_.forward(inputs, pass).pointer<float>();
    all.values.insert(all.values.end(), outputs, outputs + real * columns);
  }
  std::vector<std::int64_t> extents{static_cast<std::int64_t>(data.size())};
  extents.insert(extents.end(), sample.begin(), sample.end());
  all.shape = Shape(extents);
  return all;
}

Predictions predict(const Layer& model, const std::filesystem::path& parameters, const Dataset& data,
                    const PredictorOptions& options) {
  Predictor predictor(model, data.fields(), options);
  predictor.load(parameters);
  return predictor.predict(data);
}

Predictions predict(const Layer& model, MirroredStrategy& strategy, const Dataset& data,
                    const PredictorOptions& options) {
  Predictor predictor(model, data.fields(), options);
  CopyByName copy(predictor);
  strategy.visit(copy);
  return predictor.predict(data);
}

}  // namespace ronda
