#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/runtime/checkpoint/best_model.hpp>
#include <ronda/runtime/io/whole_file.hpp>

#include <algorithm>
#include <charconv>
#include <span>
#include <string_view>
#include <system_error>

namespace ronda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view model_prefix = "best-step-", model_suffix = ".safetensors";
constexpr const char* model_hash_key = "tensors_xxh3";

/// Of tensors in the order of their names.
std::string hash_of_tensors(const std::vector<NamedTensor>& tensors) {
  StreamHash hash;
  const auto add_text = [&](const std::string& text) {
    hash.add(std::as_bytes(std::span(text.data(), text.size() + 1)));
  };
  for (const NamedTensor& tensor : tensors) {
    add_text(tensor.name);
    add_text(tensor.shape.text());
    hash.add(std::as_bytes(std::span(tensor.values)));
    hash.add(std::as_bytes(std::span(tensor.integers)));
    hash.add(std::as_bytes(std::span(tensor.bytes)));
  }
  return hash.text();
}

}  // namespace

fs::path best_model_path(const fs::path& directory, std::uint64_t step) {
  return directory / (std::string(model_prefix) + std::to_string(step) + std::string(model_suffix));
}

std::uint64_t step_of_best_model(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(model_prefix) || !name.ends_with(model_suffix)) return 0;
  std::uint64_t step = 0;
  const char *begin = name.data() + model_prefix.size(), *end = name.data() + name.size() - model_suffix.size();
  const auto parsed = std::from_chars(begin, end, step);
  return parsed.ec == std::errc() && parsed.ptr == end ? step : 0;
}

std::vector<fs::path> list_best_models(const fs::path& directory) {
  std::vector<fs::path> models;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    if (step_of_best_model(entry->path()) > 0) models.push_back(entry->path());
  if (error) throw InputError("cannot read the folder " + directory.string() + ": " + error.message());
  std::ranges::sort(models, {}, step_of_best_model);
  return models;
}

void write_best_model(const fs::path& path, std::vector<NamedTensor> tensors,
                      std::map<std::string, std::string> metadata) {
  std::ranges::sort(tensors, {}, &NamedTensor::name);
  metadata.insert_or_assign(model_hash_key, hash_of_tensors(tensors));
  write_safetensors(path, tensors, metadata);
}

std::vector<NamedTensor> read_best_model(const fs::path& path) {
  require_regular(path);
  Safetensors file = read_safetensors(path);
  std::ranges::sort(file.tensors, {}, &NamedTensor::name);
  const std::string found = hash_of_tensors(file.tensors), expected = file.metadata[model_hash_key];
  if (found != expected)
    throw InputError(path.string() + " is damaged: expected tensors with the hash '" + expected + "', found " + found);
  return std::move(file.tensors);
}

}  // namespace ronda
