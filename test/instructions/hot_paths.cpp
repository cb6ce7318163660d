// The paths that scripts/instruction_counts.py counts the instructions of: each runs once to warm up, and once within
// `measured_path`. One process, one thread, no MPI. Prints the names of the paths, in order.
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/host/wire_format.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/data/batch_plan.hpp>
#include <ronda/data/csv.hpp>
#include <ronda/data/memory_dataset.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/layers/losses.hpp>
#include <ronda/layers/operation.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/layers/program.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/io/summary.hpp>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace ronda;

namespace {

constexpr std::size_t elements = 1 << 16, rows = 64;

using Path = std::function<void()>;

/// Numbers of both signs, none zero.
std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 1021) / 1021 - 0.4F;
  return values;
}

/// Forward, loss and backward of 64 rows.
class Step {
 public:
  Step(const Layer& model, std::unique_ptr<Primitives> primitives)
      : primitives_(std::move(primitives)),
        program_(build_graph(model, std::array{Field{"input", Shape{784}, DType::float32}}, rows), *primitives_,
                 picker_),
        loss_(SoftmaxCrossEntropy().make(program_.program().output(), *primitives_)),
        input_(program_.program().input_desc(0), inputs_.data()),
        target_({Shape{rows}, DType::int32, {}}, reinterpret_cast<std::byte*>(labels_.data())),
        weights_({Shape{rows}, DType::float32, {}}, reinterpret_cast<std::byte*>(ones_.data())),
        scratch_(Buffer::host(loss_->scratch_bytes() + 1)) {
    std::ranges::copy(numbers(rows * 784), input_.as<float>().begin());
    for (const Parameter& parameter : program_.parameters())
      std::ranges::copy(numbers(parameter.value.as<float>().size()), parameter.value.as<float>().begin());
  }

  void run() {
    const Pass pass{.stream = stream_, .weights = &weights_, .control = &control_, .on_ready = {}};
    Program& program = program_.program();
    const Tensor& outputs = program.forward({&input_, 1}, pass);
    loss_->run(outputs, target_, program.output_gradient(), scratch_.data(), pass);
    program.backward(pass);
  }

 private:
  FirstPicker picker_;
  std::unique_ptr<Primitives> primitives_;
  HostProgram program_;
  std::unique_ptr<LossOperation> loss_;
  Buffer inputs_ = Buffer::host(rows * 784 * sizeof(float));
  std::vector<std::int32_t> labels_ = std::vector<std::int32_t>(rows, 3);
  std::vector<float> ones_ = std::vector<float>(rows, 1);
  Tensor input_, target_, weights_;
  Buffer scratch_;
  StepControl control_;
  CpuStream stream_;
};

Path step(const Layer& model, std::unique_ptr<Primitives> primitives) {
  const auto state = std::make_shared<Step>(model, std::move(primitives));
  return [state] { state->run(); };
}

Path update(const char* name) {
  struct State {
    std::unique_ptr<Optimizer> optimizer;
    std::vector<float> values = numbers(elements), gradients = numbers(elements);
    std::vector<std::vector<float>> states;
    CpuStream stream;
  };
  const auto state = std::make_shared<State>();
  state->optimizer = make_optimizer({.name = name});
  OptimizerBindings bindings{.values = state->values.data()};
  bindings.segments.push_back({.name = "weight", .desc = {Shape{elements}, DType::float32, {}}});
  state->states.assign(state->optimizer->states().size(), std::vector<float>(elements));
  for (std::vector<float>& arena : state->states) bindings.states.push_back(arena.data());
  state->optimizer->bind(bindings);
  return [state] {
    static_cast<void>(state->optimizer->step({state->values.data(), state->gradients.data(), elements},
                                             {.learning_rate = 1e-3}, state->stream));
  };
}

Path sum_of_two(DType dtype) {
  const auto memory = std::make_shared<std::array<std::vector<float>, 2>>();
  for (std::vector<float>& copy : *memory) copy = numbers(elements);
  return [memory, dtype] {
    const std::array copies{reinterpret_cast<std::byte*>((*memory)[0].data()),
                            reinterpret_cast<std::byte*>((*memory)[1].data())};
    const std::size_t count = elements * sizeof(float) / size_of(dtype);
    reduce_copies({ReduceOp::sum, 2}, copies, dtype, {0, count}, std::span(copies).first(1));
  };
}

Path int8_compression() {
  struct State {
    std::vector<float> values = numbers(elements), residual = std::vector<float>(elements);
    std::vector<std::byte> wire = std::vector<std::byte>(wire_bytes(Compression::int8, elements));
  };
  const auto state = std::make_shared<State>();
  return [state] {
    encode(Compression::int8, state->values, state->residual.data(), Noise(1), state->wire.data());
    decode_and_add(Compression::int8, state->wire.data(), state->values);
  };
}

Path batch_gather() {
  struct State {
    MemoryDataset data{numbers(1000 * 784), Shape{784}, std::vector<std::int32_t>(1000, 3)};
    Batch batch{data.fields(), rows};
    std::vector<std::uint64_t> samples = std::vector<std::uint64_t>(rows);
  };
  const auto state = std::make_shared<State>();
  for (std::size_t i = 0; i < rows; ++i) state->samples[i] = i * 37 % 1000;
  return [state] { state->data.read({state->samples}, state->batch); };
}

Path sample_order() {
  const auto order = std::make_shared<std::vector<std::uint32_t>>(60000);
  return [order] { SampleOrder(order->size(), 1, true).write(1, std::span<std::uint32_t>(*order)); };
}

Path plan_hash() {
  std::vector<std::string> lines;
  for (int i = 0; i < 200; ++i) lines.push_back("conv" + std::to_string(i) + ": 64x28x28, winograd, 3x3, float32");
  return [lines] {
    Hash hash;
    for (const std::string& line : lines) hash.add(line);
    static_cast<void>(hash.text());
  };
}

Path safetensors_write(const std::filesystem::path& folder) {
  const std::vector<NamedTensor> tensors{{.name = "dense1.weight", .shape = {256, 256}, .values = numbers(elements)},
                                         {.name = "dense1.bias", .shape = {256}, .values = numbers(256)}};
  return [=] { write_safetensors(folder / "model.safetensors", tensors); };
}

Path summary_json(const std::filesystem::path& folder) {
  Summary summary;
  summary.application = "hot_paths";
  for (std::uint64_t epoch = 1; epoch <= 20; ++epoch)
    summary.epoch_history.push_back({.epoch = epoch, .train_loss = 0.5});
  for (int i = 0; i < 50; ++i) summary.options.emplace_back("option-" + std::to_string(i), "a value");
  return [=] { write_summary(folder / "summary.json", summary); };
}

Path csv_parse(const std::filesystem::path& folder) {
  std::ofstream file(folder / "table.csv");
  file << "a,b,c,d\n";
  for (int i = 0; i < 1000; ++i) file << i << ',' << 0.5 * i << ",-1e-3,\"" << i % 7 << "\"\n";
  file.close();
  return [path = folder / "table.csv"] { static_cast<void>(read_csv(path)); };
}

}  // namespace

/// Callgrind counts from its beginning to its end, by its name.
extern "C" [[gnu::noinline]] void measured_path(const Path& path) { path(); }

/// hot_paths FOLDER: files are written there.
int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  use_threads(1);
  const std::vector<std::pair<const char*, Path>> paths{
      {"softmax_step", step(Sequential(Dense(10)), make_reference_primitives())},
      {"mlp_step", step(Sequential(Dense(128), ReLU(), Dense(10)), make_onednn_primitives(1))},
      {"sgd_update", update("sgd")},
      {"adam_update", update("adam")},
      {"sum_float32", sum_of_two(DType::float32)},
      {"sum_bfloat16", sum_of_two(DType::bfloat16)},
      {"int8_compression", int8_compression()},
      {"batch_gather", batch_gather()},
      {"sample_order", sample_order()},
      {"plan_hash", plan_hash()},
      {"safetensors_write", safetensors_write(folder)},
      {"summary_json", summary_json(folder)},
      {"csv_parse", csv_parse(folder)},
  };
  for (const auto& [name, path] : paths) {
    path();
    measured_path(path);
    std::cout << name << std::endl;
  }
}
