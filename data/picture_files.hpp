#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/data/dataset.hpp>

namespace ronda {

struct PictureFilesOptions {
  std::int64_t size = 224;    ///< of a sample: height and width
  std::int64_t resize = 256;  ///< the shorter side, before the middle is cropped; at least `size`
  std::int64_t channels = 3;  ///< 1: grey, 0.299 red + 0.587 green + 0.114 blue (ITU-R BT.601)
};

/// Pictures without classes, a file each, in the order given: JPEG, PNG, or binary PGM and PPM of bytes. What they are
/// is seen from their first bytes. `input`: float32 (size, size, channels), in 0..1, as ImageFolder has it; `target`:
/// int32 scalar, 0. A picture is decoded when it is read: nothing is kept of it.
class PictureFiles final : public Dataset {
 public:
  /// Throws InputError for options that cannot work.
  explicit PictureFiles(std::vector<std::filesystem::path> files, const PictureFilesOptions& options = {});
  ~PictureFiles() override;

  [[nodiscard]] std::size_t size() const override { return files_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return fields_; }
  /// Throws InputError that names the file, and what is wrong, where it is damaged, and in a build without its library.
  /// Decoders allocate.
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::string origin(std::uint64_t sample) const override { return files_[sample].string(); }

 private:
  struct Tools;  ///< to decode with

  std::vector<std::filesystem::path> files_;
  PictureFilesOptions options_;
  std::array<Field, 2> fields_;
  std::unique_ptr<Tools> tools_;
};

}  // namespace ronda
