#include <ronda/core/hash.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/io/atomic_file.hpp>
#include <ronda/runtime/io/detail/json.hpp>
#include <ronda/runtime/io/safetensors.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <numeric>
#include <tuple>

namespace ronda {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and so is what we copy");

using Entry = SafetensorsFile::Entry;

/// The format's word for a type that is read or written.
const char* format_name(DType dtype) {
  switch (dtype) {
    case DType::int64: return "I64";
    case DType::int8: return "I8";
    case DType::float64: return "F64";
    default: return "F32";
  }
}
constexpr std::array readable{DType::float32, DType::int64, DType::int8};

/// Whether a file's first bytes are those of PyTorch's `torch.save`: a zip archive, or, in earlier versions, a pickle.
bool is_pickle(std::uint64_t first_bytes) {
  constexpr std::uint64_t zip = 0x04034b50, pickle = 0x80;
  return (first_bytes & 0xffffffffU) == zip || ((first_bytes & 0xffU) == pickle && (first_bytes >> 8 & 0xffU) <= 5);
}

/// Makes sense of a header; knows the file's name for errors.
class Header {
 public:
  Header(const std::filesystem::path& path, std::uint64_t data_bytes) : path_(path), data_bytes_(data_bytes) {}

  [[nodiscard]] std::map<std::string, std::string> metadata(const nlohmann::json& value) const {
    std::map<std::string, std::string> result;
    if (!value.is_object()) throw damaged("expected __metadata__ to be an object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) throw damaged("expected __metadata__ to hold texts, found " + shown(text));
      result[key] = text.get<std::string>();
    }
    return result;
  }

  [[nodiscard]] Entry entry(const std::string& name, const nlohmann::json& value) const {
    const auto bad = [&](const std::string& what) { return damaged("tensor " + quoted(name) + ": " + what); };
    if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
        !value.contains("data_offsets"))
      throw bad("expected dtype, shape and data_offsets, and nothing else");
    const auto known =
        std::ranges::find_if(readable, [&](DType dtype) { return value["dtype"] == format_name(dtype); });
    if (known == readable.end())
      throw bad("expected dtype F32, I64 or I8, found " + shown(value["dtype"]) + "; save it as float32");
    const DType dtype = *known;
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
    if (offsets.size() != 2) throw bad("expected two data_offsets, found " + std::to_string(offsets.size()));
    if (offsets[0] > offsets[1] || offsets[1] > data_bytes_)
      throw bad("data_offsets " + value["data_offsets"].dump() + " lie outside of the file's " +
                std::to_string(data_bytes_) + " bytes of data; it is cut off or damaged");
    std::uint64_t bytes = size_of(dtype);
    for (const std::uint64_t extent : extents)  // beside a 0 the product tells nothing
      if (extent > std::numeric_limits<std::int64_t>::max() || __builtin_mul_overflow(bytes, extent, &bytes))
        throw bad("shape " + value["shape"].dump() + " overflows");
    if (bytes != offsets[1] - offsets[0])
      throw bad("shape " + value["shape"].dump() + " needs " + std::to_string(bytes) + " bytes, data_offsets give " +
                std::to_string(offsets[1] - offsets[0]));
    const std::vector<std::int64_t> signed_extents(extents.begin(), extents.end());
    return {name, Shape(signed_extents), dtype, offsets[0], offsets[1]};
  }

  /// Every byte of the data belongs to exactly one tensor.
  void check_cover(std::span<const Entry> entries) const {
    std::uint64_t at = 0;
    for (const auto& entry : entries) {
      if (entry.begin != at)
        throw damaged("tensor " + quoted(entry.name) + " begins at byte " + std::to_string(entry.begin) +
                      " of the data, expected " + std::to_string(at) + ": the tensors overlap or leave a gap");
      at = entry.end;
    }
    if (at != data_bytes_)
      throw damaged("its tensors take " + std::to_string(at) + " bytes of data, found " + std::to_string(data_bytes_));
  }

  [[nodiscard]] InputError damaged(const std::string& what) const {
    return InputError(path_.string() + " is no sound safetensors file: " + what);
  }

 private:
  static std::string quoted(const std::string& name) {
    const std::string text = shown(name);
    return "'" + text.substr(1, text.size() - 2) + "'";
  }

  const std::filesystem::path& path_;
  std::uint64_t data_bytes_;
};

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path), file_(path, std::ios::binary) {
  std::error_code ignored;
  if (!file_ || std::filesystem::is_directory(path, ignored))
    throw InputError("cannot open " + path.string() + ": " + std::strerror(file_ ? EISDIR : errno));
  const nlohmann::json json = parse_json(read_header(), path_);
  const Header header(path_, data_bytes_);
  if (!json.is_object()) throw header.damaged("expected its header to be a JSON object");
  for (const auto& [name, value] : json.items())
    if (name == "__metadata__")
      metadata_ = header.metadata(value);
    else
      entries_.push_back(header.entry(name, value));
  std::ranges::sort(entries_,
                    [](const Entry& a, const Entry& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  header.check_cover(entries_);
}

std::string SafetensorsFile::read_header() {
  file_.seekg(0, std::ios::end);
  const auto size = static_cast<std::uint64_t>(std::max<std::streamoff>(file_.tellg(), 0));
  file_.seekg(0);
  const Header header(path_, 0);
  std::uint64_t length = 0;
  if (size < sizeof length)
    throw header.damaged("expected at least 8 bytes, found " + std::to_string(size) +
                         "; it is cut off or no such file");
  read_bytes(reinterpret_cast<char*>(&length), sizeof length);
  if (length > size - sizeof length) {
    if (is_pickle(length))
      throw InputError(path_.string() + " is a file of torch.save, expected safetensors; convert it in Python: " +
                       "safetensors.torch.save_file(torch.load(FILE), NEW_FILE)");
    throw header.damaged("its first 8 bytes promise a header of " + std::to_string(length) + " bytes, the file has " +
                         std::to_string(size) + "; it is cut off or no such file");
  }
  if (const std::uint64_t most = JsonLimits().bytes; length > most)
    throw header.damaged("its header has " + std::to_string(length) + " bytes, at most " + std::to_string(most) +
                         " are read");
  data_begin_ = sizeof length + length;
  data_bytes_ = size - data_begin_;
  std::string text(length, '\0');
  read_bytes(text.data(), length);
  return text;
}

template <class T>
std::vector<T> SafetensorsFile::read_as(const Entry& entry) {
  if (entry.dtype != dtype_of<T>)
    throw InputError(path_.string() + ": tensor '" + entry.name + "' has dtype " + format_name(entry.dtype) +
                     ", expected " + format_name(dtype_of<T>));
  std::vector<T> values((entry.end - entry.begin) / sizeof(T));
  file_.seekg(static_cast<std::streamoff>(data_begin_ + entry.begin));
  read_bytes(reinterpret_cast<char*>(values.data()), entry.end - entry.begin);
  return values;
}
template std::vector<float> SafetensorsFile::read_as(const Entry& entry);
template std::vector<std::int64_t> SafetensorsFile::read_as(const Entry& entry);
template std::vector<std::int8_t> SafetensorsFile::read_as(const Entry& entry);

void SafetensorsFile::read_bytes(char* to, std::uint64_t count) {
  if (!file_.read(to, static_cast<std::streamsize>(count))) throw InputError("cannot read " + path_.string());
}

Safetensors read_safetensors(const std::filesystem::path& path) {
  SafetensorsFile file(path);
  Safetensors result;
  result.metadata = file.metadata();
  for (const auto& entry : file.entries()) {
    NamedTensor& tensor = result.tensors.emplace_back(NamedTensor{entry.name, entry.shape});
    if (entry.dtype == DType::int64)
      tensor.integers = file.read_integers(entry);
    else if (entry.dtype == DType::int8)
      tensor.bytes = file.read_int8(entry);
    else
      tensor.values = file.read(entry);
  }
  return result;
}

namespace {

InputError not_utf8(const std::string& what) {
  return InputError(what + " is not UTF-8, which a safetensors file has all texts in: give it in UTF-8");
}

}  // namespace

FileSum write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                          const std::map<std::string, std::string>& metadata, Storage& storage) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  for (const auto& [key, text] : metadata)
    if (!is_utf8(key) || !is_utf8(text)) throw not_utf8("the metadata '" + printable(key) + "'");
  std::uint64_t at = 0;
  for (const auto& tensor : tensors) {
    if (!is_utf8(tensor.name)) throw not_utf8("the name of the tensor '" + printable(tensor.name) + "'");
    const auto count = static_cast<std::uint64_t>(tensor.shape.count());
    const std::array sizes{tensor.values.size(), tensor.integers.size(), tensor.bytes.size(), tensor.doubles.size()};
    const std::size_t given = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
    const DType dtype = tensor.dtype();
    const auto types = std::ranges::count_if(sizes, [](std::size_t size) { return size > 0; });
    if (given != count || types > 1 || header.contains(tensor.name))
      throw LogicError("tensor '" + tensor.name + "' " + tensor.shape.text() + " has " + std::to_string(given) +
                       " values, of two types, or a name that comes twice");
    const std::uint64_t end = at + count * size_of(dtype);
    header[tensor.name] = {{"dtype", format_name(dtype)},
                           {"shape", std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end())},
                           {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the data is aligned
  const std::uint64_t length = text.size();

  const auto file = storage.create(path);
  StreamHash hash;
  std::uint64_t bytes = 0;
  const auto write = [&](std::span<const std::byte> piece) {
    hash.add(piece);
    bytes += piece.size();
    file->write(piece);
  };
  write(std::as_bytes(std::span(&length, 1)));
  write(std::as_bytes(std::span(text)));
  for (const auto& tensor : tensors) {
    write(std::as_bytes(std::span(tensor.values)));
    write(std::as_bytes(std::span(tensor.integers)));
    write(std::as_bytes(std::span(tensor.bytes)));
    write(std::as_bytes(std::span(tensor.doubles)));
  }
  file->commit();
  return {bytes, hash.text()};
}

}  // namespace ronda
