// What a build without HDF5 has in the place of the folder hdf5/.
#include <ronda/data/hdf5.hpp>
#include <ronda/data/optional_formats.hpp>

namespace ronda {

OptionalFormat hdf5_format() { return {"HDF5", "", "libhdf5-dev"}; }

std::unique_ptr<Dataset> open_hdf5(const std::filesystem::path& file, const std::vector<Hdf5Field>&) {
  throw InputError(file.string() + ": " + lacking(hdf5_format()).what());
}

struct Hdf5Writer::Impl {};
Hdf5Writer::Hdf5Writer(const std::filesystem::path&, const std::vector<Hdf5Array>&) { throw lacking(hdf5_format()); }
Hdf5Writer::~Hdf5Writer() = default;
void Hdf5Writer::write(std::size_t, std::span<const std::byte>) {}
void Hdf5Writer::flush() {}

}  // namespace ronda
