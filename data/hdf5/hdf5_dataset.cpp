#include <ronda/core/data_files.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/detail/conversion.hpp>
#include <ronda/data/hdf5.hpp>
#include <ronda/data/hdf5/array.hpp>
#include <ronda/data/optional_formats.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace hdf5 {
namespace {

class Hdf5Dataset final : public Dataset {
 public:
  Hdf5Dataset(const std::filesystem::path& path, const std::vector<Hdf5Field>& fields);
  ~Hdf5Dataset() override {
    const auto locked = lock();
    close();
  }
  Hdf5Dataset(const Hdf5Dataset&) = delete;
  Hdf5Dataset& operator=(const Hdf5Dataset&) = delete;

  [[nodiscard]] std::size_t size() const override { return size_; }
  [[nodiscard]] std::span<const Field> fields() const override { return fields_; }
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::string origin(std::uint64_t /*sample*/) const override { return path_; }
  [[nodiscard]] std::uint64_t fingerprint() const override;

 private:
  struct Source {
    Array array;
    Conversion convert;
  };

  void open(const std::filesystem::path& path);
  void add(const std::filesystem::path& path, const Hdf5Field& field);
  void close() noexcept {
    arrays_.clear();
    file_ = Handle();
  }

  std::string path_;
  Handle file_;
  std::vector<Source> arrays_;
  std::vector<Field> fields_;
  std::size_t size_ = 0;
  std::uint64_t file_bytes_ = 0;
  mutable std::vector<std::byte> sample_;  ///< as the file has it; used under the lock
};

Hdf5Dataset::Hdf5Dataset(const std::filesystem::path& path, const std::vector<Hdf5Field>& fields)
    : path_(path.string()) {
  const auto locked = lock();
  const Silence silence;
  try {
    open(path);
    for (const Hdf5Field& field : fields) add(path, field);
    if (fields_.empty()) throw InputError(path.string() + ": a dataset needs fields, none were named");
  } catch (...) {
    close();  // under the lock
    throw;
  }
}

void Hdf5Dataset::open(const std::filesystem::path& path) {
  std::error_code problem;
  file_bytes_ = std::filesystem::file_size(path, problem);
  if (problem) throw InputError("cannot open " + path.string() + ": " + problem.message());
  file_ = Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (file_.empty())
    throw InputError(path.string() + ": expected an HDF5 file; it is none, or damaged (" + last_error() + ")");
  note_data_file(path);
}

void Hdf5Dataset::add(const std::filesystem::path& path, const Hdf5Field& field) {
  if (std::ranges::any_of(fields_, [&](const Field& each) { return each.name == field.name; }))
    throw InputError("a dataset has two fields named '" + field.name + "'");
  Array array(file_, path, field.dataset);
  array.require_possible(file_bytes_);
  const std::int64_t samples = array.shape()[0];
  if (arrays_.empty()) size_ = static_cast<std::size_t>(samples);
  if (static_cast<std::size_t>(samples) != size_)
    throw InputError(array.source() + " has " + counted(samples, "sample") + ", " + arrays_.front().array.source() +
                     " has " + std::to_string(size_));
  const Shape shape = array.shape().without_batch();
  fields_.push_back({field.name, shape, type_in_batch(array.dtype(), field.bytes)});
  sample_.resize(std::max(sample_.size(), static_cast<std::size_t>(shape.count()) * size_of(array.dtype())));
  const Conversion conversion(array.dtype(), field.bytes);
  arrays_.push_back({std::move(array), conversion});
}

void Hdf5Dataset::read(const SampleRequest& request, Batch& batch) const {
  const auto locked = lock();
  const Silence silence;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const auto& [array, convert] = arrays_[i];
    const auto elements = static_cast<std::size_t>(fields_[i].shape.count());
    std::byte* to = batch.field(fields_[i].name).data();
    for (const std::uint64_t sample : request.samples) {
      array.read(sample, sample_.data());
      if (const auto bad = convert(sample_.data(), to, elements))
        throw InputError(array.source() + ", sample " + std::to_string(sample) +
                         ": expected whole numbers of 32 bits, found " + std::to_string(*bad));
      to += elements * size_of(fields_[i].dtype);
    }
  }
}

/// Of fewer samples than other datasets': each may take the unpacking of a chunk.
std::uint64_t Hdf5Dataset::fingerprint() const {
  constexpr std::size_t most = 64;
  return Hash().add(file_bytes_).add(fingerprint_of(most)).value();
}

}  // namespace
}  // namespace hdf5

OptionalFormat hdf5_format() {
  const std::string version =
      std::to_string(H5_VERS_MAJOR) + "." + std::to_string(H5_VERS_MINOR) + "." + std::to_string(H5_VERS_RELEASE);
  return {"HDF5", "HDF5 " + version, "libhdf5-dev"};
}

std::unique_ptr<Dataset> open_hdf5(const std::filesystem::path& file, const std::vector<Hdf5Field>& fields) {
  return std::make_unique<hdf5::Hdf5Dataset>(file, fields);
}

}  // namespace ronda
