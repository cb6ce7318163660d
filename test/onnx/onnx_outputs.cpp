// What Ronda predicts, for scripts/check_onnx.sh to compare with:
//   onnx_outputs MODEL INPUTS.npy OUTPUTS.npy    of what an application has saved
//   onnx_outputs --operations FOLDER             of a small model of each operation: NAME.onnx, and NAME.VALUE.npy
#include "../../apps/saved_model.hpp"
#include "../../apps/tool.hpp"
#include "onnx/models.hpp"

#include <iostream>
#include <string>

#include <ronda/data/memory_dataset.hpp>
#include <ronda/data/numpy.hpp>
#include <ronda/runtime/io/whole_file.hpp>
#include <ronda/runtime/onnx/write_onnx.hpp>
#include <ronda/runtime/trainer/predictor.hpp>

using namespace ronda;
using namespace ronda::test;

namespace {

namespace fs = std::filesystem;

template <class Number>
void write_npy(const fs::path& file, const Shape& shape, std::span<const Number> values) {
  write_text(file, npy_header(shape, dtype_of<Number>) +
                       std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
}

void predict_saved(const fs::path& model, const fs::path& inputs, const fs::path& outputs) {
  const apps::SavedModel saved = apps::read_saved_model(model);
  std::vector<NumpyField> fields;
  fields.push_back({"input", read_npy(inputs)});
  const NumpyDataset data(std::move(fields));
  Predictor predictor(saved.model, data.fields(), {.batch_size = data.size(), .threads = 2});
  predictor.load(saved.tensors, saved.source);
  const Predictions found = predictor.predict(data);
  write_npy<float>(outputs, found.shape, found.values);
}

constexpr std::int64_t samples = 6;

/// Numbers for a field, of all samples; written beside the model too.
Column made_column(const SmallModel& small, const Field& field, const fs::path& folder) {
  const RngKey key(7, Purpose::test, small.name + field.name);
  std::vector<std::int64_t> extents{samples};
  extents.insert(extents.end(), field.shape.begin(), field.shape.end());
  const Shape all(extents);
  const fs::path file = folder / (small.name + "." + field.name + ".npy");
  if (field.dtype == DType::float32) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < all.count(); ++i) values.push_back(key.normal(static_cast<std::uint64_t>(i)));
    write_npy<float>(file, all, values);
    return {field.name, field.shape, std::move(values)};
  }
  std::vector<std::int32_t> values;
  const auto range = static_cast<std::uint64_t>(small.most - small.least);
  for (std::int64_t i = 0; i < all.count(); ++i)
    values.push_back(small.least + static_cast<std::int32_t>(key.below(range, static_cast<std::uint64_t>(i))));
  // The first sample: nothing but the least, which is padding, or a length of 0.
  std::fill_n(values.begin(), all.without_batch().count(), small.least);
  write_npy<std::int32_t>(file, all, values);
  return {field.name, field.shape, std::move(values)};
}

void predict_operations(const fs::path& folder) {
  for (const SmallModel& small : small_models()) {
    std::vector<Column> columns;
    for (const Field& field : small.fields) columns.push_back(made_column(small, field, folder));
    const Graph graph = build_graph(small.model, small.fields, 1);
    const std::vector<NamedTensor> tensors = made_tensors(graph);
    write_onnx(folder / (small.name + ".onnx"), graph, tensors, "made");
    Predictor predictor(small.model, small.fields, {.batch_size = 4});
    predictor.load(tensors, "made");
    const Predictions found = predictor.predict(MemoryDataset(std::move(columns)));
    write_npy<float>(folder / (small.name + ".output.npy"), found.shape, found.values);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return apps::run_alone([&] {
    if (words.size() == 2 && words[0] == "--operations") {
      predict_operations(words[1]);
    } else if (words.size() == 3) {
      predict_saved(words[0], words[1], words[2]);
    } else {
      std::cerr << "usage: onnx_outputs MODEL INPUTS.npy OUTPUTS.npy | onnx_outputs --operations FOLDER\n";
      return 2;
    }
    return 0;
  });
}
