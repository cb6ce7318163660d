#include <ronda/runtime/core/hash.hpp>
#include <ronda/runtime/files/atomic_file.hpp>
#include <ronda/runtime/files/detail/json.hpp>
#include <ronda/runtime/files/safetensors.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

namespace ronda {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and so is what we copy");

constexpr std::uint64_t longest_header = 100'000'000;  // the format's own limit

/// Where a tensor's bytes are, after the header.
struct Entry {
  std::string name;
  Shape shape;
  std::uint64_t begin, end;
};

/// Reads one file; knows its name for errors.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path), file_(path, std::ios::binary | std::ios::ate) {
    std::error_code ignored;
    if (!file_ || std::filesystem::is_directory(path, ignored))
      throw InputError("cannot open " + path.string() + ": " + std::strerror(file_ ? EISDIR : errno));
    size_ = static_cast<std::uint64_t>(file_.tellg());
    file_.seekg(0);
  }

  Safetensors read() {
    const nlohmann::json header = parse_json(read_header(), path_);
    if (!header.is_object()) throw damaged("expected its header to be a JSON object");
    Safetensors result;
    std::vector<Entry> entries;
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__")
        result.metadata = metadata(value);
      else
        entries.push_back(entry(name, value));
    }
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
    check_cover(entries);
    for (const auto& each : entries) result.tensors.push_back({each.name, each.shape, values(each)});
    return result;
  }

 private:
  std::string read_header() {
    std::uint64_t length = 0;
    if (size_ < sizeof length)
      throw damaged("expected at least 8 bytes, found " + std::to_string(size_) + "; it is cut off or no such file");
    file_.read(reinterpret_cast<char*>(&length), sizeof length);
    if (length > longest_header || length > size_ - sizeof length)
      throw damaged("its first 8 bytes promise a header of " + std::to_string(length) + " bytes, the file has " +
                    std::to_string(size_) + "; it is cut off or no such file");
    data_bytes_ = size_ - sizeof length - length;
    std::string text(length, '\0');
    read_bytes(text.data(), length);
    return text;
  }

  std::map<std::string, std::string> metadata(const nlohmann::json& value) const {
    std::map<std::string, std::string> result;
    if (!value.is_object()) throw damaged("expected __metadata__ to be an object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) throw damaged("expected __metadata__ to hold texts, found " + text.dump());
      result[key] = text.get<std::string>();
    }
    return result;
  }

  Entry entry(const std::string& name, const nlohmann::json& value) const {
    const auto bad = [&](const std::string& what) { return damaged("tensor '" + name + "': " + what); };
    if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
        !value.contains("data_offsets"))
      throw bad("expected dtype, shape and data_offsets, and nothing else");
    if (value["dtype"] != "F32")
      throw bad("expected dtype F32, found " + value["dtype"].dump() + "; save it as float32");
    const auto numbers = [&](const char* key) {
      std::vector<std::uint64_t> result;
      if (!value[key].is_array()) throw bad(std::string("expected a list of numbers as ") + key);
      for (const auto& number : value[key]) {
        if (!number.is_number_unsigned()) throw bad(std::string("expected whole numbers in ") + key);
        result.push_back(number.get<std::uint64_t>());
      }
      return result;
    };
    const auto extents = numbers("shape"), offsets = numbers("data_offsets");
    if (extents.size() > Shape::capacity)
      throw bad("it has " + std::to_string(extents.size()) + " axes, at most 6 can be read");
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_bytes_)
      throw bad("data_offsets " + value["data_offsets"].dump() + " lie outside of the file's " +
                std::to_string(data_bytes_) + " bytes of data; it is cut off or damaged");
    std::uint64_t bytes = sizeof(float);
    for (const std::uint64_t extent : extents)  // beside a 0 the product tells nothing
      if (extent > std::numeric_limits<std::int64_t>::max() || __builtin_mul_overflow(bytes, extent, &bytes))
        throw bad("shape " + value["shape"].dump() + " overflows");
    if (bytes != offsets[1] - offsets[0])
      throw bad("shape " + value["shape"].dump() + " needs " + std::to_string(bytes) + " bytes, data_offsets give " +
                std::to_string(offsets[1] - offsets[0]));
    const std::vector<std::int64_t> signed_extents(extents.begin(), extents.end());
    return {name, Shape(signed_extents), offsets[0], offsets[1]};
  }

  /// Every byte of the data belongs to exactly one tensor.
  void check_cover(const std::vector<Entry>& entries) const {
    std::uint64_t at = 0;
    for (const auto& entry : entries) {
      if (entry.begin != at)
        throw damaged("tensor '" + entry.name + "' begins at byte " + std::to_string(entry.begin) +
                      " of the data, expected " + std::to_string(at) + ": the tensors overlap or leave a gap");
      at = entry.end;
    }
    if (at != data_bytes_)
      throw damaged("its tensors take " + std::to_string(at) + " bytes of data, found " + std::to_string(data_bytes_));
  }

  std::vector<float> values(const Entry& entry) {
    std::vector<float> values((entry.end - entry.begin) / sizeof(float));
    read_bytes(reinterpret_cast<char*>(values.data()), entry.end - entry.begin);
    return values;
  }

  void read_bytes(char* to, std::uint64_t count) {
    if (!file_.read(to, static_cast<std::streamsize>(count))) throw InputError("cannot read " + path_.string());
  }

  InputError damaged(const std::string& what) const {
    return InputError(path_.string() + " is no sound safetensors file: " + what);
  }

  const std::filesystem::path& path_;
  std::ifstream file_;
  std::uint64_t size_ = 0, data_bytes_ = 0;
};

}  // namespace

Safetensors read_safetensors(const std::filesystem::path& path) { return Reader(path).read(); }

FileSum write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                          const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const auto& tensor : tensors) {
    const auto count = static_cast<std::uint64_t>(tensor.shape.count());
    if (tensor.values.size() != count || header.contains(tensor.name))
      throw LogicError("tensor '" + tensor.name + "' " + tensor.shape.text() + " has " +
                       std::to_string(tensor.values.size()) + " values, or a name that comes twice");
    const std::uint64_t end = at + count * sizeof(float);
    header[tensor.name] = {{"dtype", "F32"},
                           {"shape", std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end())},
                           {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the data is aligned
  const std::uint64_t length = text.size();

  AtomicFile file(path);
  StreamHash hash;
  std::uint64_t bytes = 0;
  const auto write = [&](std::span<const std::byte> piece) {
    hash.add(piece);
    bytes += piece.size();
    file.write(piece);
  };
  write(std::as_bytes(std::span(&length, 1)));
  write(std::as_bytes(std::span(text)));
  for (const auto& tensor : tensors) write(std::as_bytes(std::span(tensor.values)));
  file.commit();
  return {bytes, hash.text()};
}

}  // namespace ronda
