#include <ronda/runtime/checkpoint/model_in.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace ronda {
namespace {

using Names = std::set<std::string>;

constexpr std::string_view average = ".ema";

std::string owner_of(const std::string& name) { return name.substr(0, name.rfind('.')); }

/// Where parameters have an average, the model is that, as what `save` writes: it takes their names, and they go.
void take_averages(std::vector<NamedTensor>& tensors) {
  Names averaged;
  for (const NamedTensor& tensor : tensors)
    if (tensor.name.ends_with(average)) averaged.insert(owner_of(tensor.name));
  std::erase_if(tensors, [&](const NamedTensor& tensor) { return averaged.contains(tensor.name); });
  for (NamedTensor& tensor : tensors)
    if (tensor.name.ends_with(average)) tensor.name = owner_of(tensor.name);
}

/// Sums over the ranks, by name.
class Means {
 public:
  void add(const NamedTensor& tensor) {
    Sum& sum = sums_[tensor.name];
    sum.shape = tensor.shape;
    sum.numbers.resize(tensor.values.size());
    for (std::size_t i = 0; i < sum.numbers.size(); ++i) sum.numbers[i] += tensor.values[i];
    ++sum.ranks;
  }
  void append_to(std::vector<NamedTensor>& tensors) const {
    for (const auto& [name, sum] : sums_) {
      NamedTensor& mean = tensors.emplace_back(NamedTensor{name, sum.shape});
      for (const double number : sum.numbers) mean.values.push_back(static_cast<float>(number / sum.ranks));
    }
  }

 private:
  struct Sum {
    Shape shape;
    std::vector<double> numbers;
    int ranks = 0;
  };
  std::map<std::string, Sum> sums_;
};

/// Those of layers: a layer is the owner of another tensor too.
void append_counters(const CheckpointManifest& manifest, std::vector<NamedTensor>& tensors) {
  Names owners;
  for (const NamedTensor& tensor : tensors) owners.insert(owner_of(tensor.name));
  for (const auto& [name, numbers] : manifest.counters)
    if (owners.contains(owner_of(name)))
      tensors.push_back(
          {name, numbers.size() == 1 ? Shape{} : Shape{static_cast<std::int64_t>(numbers.size())}, {}, numbers});
}

}  // namespace

std::vector<NamedTensor> model_in(const std::filesystem::path& checkpoint, const CheckpointManifest& manifest,
                                  bool all) {
  Names alike;
  for (const auto& part : manifest.parts) alike.insert(part.tensors.begin(), part.tensors.end());
  const Names averaged(manifest.averaged.begin(), manifest.averaged.end());
  // What an optimizer keeps of a parameter is named after it: `conv1.weight.momentum_buffer`.
  const auto is_wanted = [&](const std::string& name) {
    return all || !alike.contains(owner_of(name)) || name.ends_with(average);
  };
  std::vector<NamedTensor> tensors;
  Means means;
  for (const auto& part : manifest.parts)
    for (auto& tensor : read_safetensors(checkpoint / part.file).tensors)
      if (!is_wanted(tensor.name))
        continue;
      else if (averaged.contains(tensor.name))
        means.add(tensor);
      else if (alike.contains(tensor.name))
        tensors.push_back(std::move(tensor));
  means.append_to(tensors);
  if (!all) take_averages(tensors);
  append_counters(manifest, tensors);
  std::ranges::sort(tensors, {}, &NamedTensor::name);
  return tensors;
}

}  // namespace ronda
