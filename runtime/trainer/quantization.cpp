#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/layers/int8.hpp>
#include <ronda/runtime/trainer/quantization.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace ronda {
namespace {

void require_float32(std::span<const NamedTensor> tensors, const std::filesystem::path& source) {
  for (const NamedTensor& tensor : tensors) {
    if (tensor.dtype() == DType::int8)
      throw InputError(source.string() + " is quantised already: " + tensor.name +
                       " is int8; quantise the model that it was made of");
    if (!std::ranges::all_of(tensor.values, [](float x) { return std::isfinite(x); }))
      throw InputError(source.string() + ": " + tensor.name +
                       " has a NaN or an infinity, and cannot be quantised; is it of a training that failed?");
  }
}

std::deque<InputRange> calibrate(const Layer& model, std::span<const NamedTensor> tensors,
                                 const std::filesystem::path& source, std::span<const Dataset* const> samples,
                                 PredictorOptions options, const std::function<void(std::size_t)>& computed) {
  std::deque<InputRange> ranges;
  options.rewrite = [&ranges](Graph graph) { return with_ranges(std::move(graph), ranges); };
  Predictor predictor(model, samples.front()->fields(), options);
  predictor.load(tensors, source);
  std::size_t before = 0;
  for (const Dataset* data : samples) {
    std::size_t done = 0;
    predictor.predict(*data, [&](std::span<const float>) {
      done = std::min(done + options.batch_size, data->size());
      if (computed) computed(before + done);
    });
    before += data->size();
  }
  for (const InputRange& range : ranges)
    if (!range.finite)
      throw InputError(source.string() + ": what the model computes before " + range.weight +
                       " is not finite for some of the samples; they, or the model, cannot be used");
  return ranges;
}

/// `dense1.` of `dense1.weight`.
std::string owner_of(const std::string& tensor) { return tensor.substr(0, tensor.rfind('.') + 1); }

/// The weight, and its scales. Returns what the bias is to be corrected by.
std::vector<float> append_quantized(const NamedTensor& weight, const InputRange& range, std::vector<NamedTensor>& to) {
  const std::string owner = owner_of(weight.name);
  const std::int64_t outputs = weight.shape[0];
  Int8Weight q = int8_weight(weight.values, outputs);
  std::vector<float> correction = int8_bias_correction(weight.values, q, range);
  const Int8Input input = int8_input(range);
  to.push_back({.name = weight.name, .shape = weight.shape, .bytes = std::move(q.values)});
  to.push_back({.name = owner + "weight_scale", .shape = {outputs}, .values = std::move(q.scales)});
  to.push_back({.name = owner + "input_scale", .shape = {1}, .values = {input.scale}});
  to.push_back({.name = owner + "input_zero", .shape = {1}, .values = {input.zero}});
  return correction;
}

}  // namespace

std::vector<std::string> int8_weights(std::span<const NamedTensor> tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& tensor : tensors)
    if (tensor.dtype() == DType::int8) names.push_back(tensor.name);
  return names;
}

void require_scales(std::span<const NamedTensor> tensors, const std::filesystem::path& source) {
  std::set<std::string> owners;
  for (const std::string& weight : int8_weights(tensors)) owners.insert(owner_of(weight));
  for (const NamedTensor& tensor : tensors) {
    const std::string owner = owner_of(tensor.name), name = tensor.name.substr(owner.size());
    const bool scale = name == "weight_scale" || name == "input_scale", zero = name == "input_zero";
    if ((!scale && !zero) || !owners.contains(owner)) continue;
    for (const float x : tensor.values)
      if (scale ? !(x > 0 && std::isfinite(x)) : !(x >= 0 && x <= 255))
        throw InputError(source.string() + ": " + tensor.name + " has " + shortest(x) + ", and " +
                         (scale ? "a scale is finite and above 0" : "it is from 0 to 255") + "; is the file damaged?");
  }
}

std::function<Graph(Graph)> int8_rewrite(std::vector<std::string> weights) {
  if (weights.empty()) return {};
  return [names = std::move(weights)](Graph graph) { return with_int8(std::move(graph), names); };
}

std::vector<NamedTensor> quantize(const Layer& model, std::span<const NamedTensor> tensors,
                                  const std::filesystem::path& source, std::span<const Dataset* const> samples,
                                  const PredictorOptions& options, const std::function<void(std::size_t)>& computed) {
  if (std::ranges::all_of(samples, [](const Dataset* data) { return data->size() == 0; }))
    throw InputError("quantisation needs samples of the training data: there are none");
  require_float32(tensors, source);
  const std::deque<InputRange> ranges = calibrate(model, tensors, source, samples, options, computed);
  if (ranges.empty())
    throw InputError(source.string() + ": the model has no dense layer or convolution that can be int8");
  std::vector<NamedTensor> result;
  std::map<std::string, std::vector<float>> corrections;  // by the name of the bias
  for (const NamedTensor& tensor : tensors)
    if (const auto range = std::ranges::find(ranges, tensor.name, &InputRange::weight); range != ranges.end())
      corrections[range->bias] = append_quantized(tensor, *range, result);
    else
      result.push_back(tensor);
  for (NamedTensor& tensor : result)
    if (const auto correction = corrections.find(tensor.name); correction != corrections.end())
      std::ranges::transform(tensor.values, correction->second, tensor.values.begin(), std::plus());
  return result;
}

}  // namespace ronda
