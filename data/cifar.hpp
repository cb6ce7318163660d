#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/data/memory_dataset.hpp>

namespace ronda {

/// CIFAR-10 or CIFAR-100: small colour images with class labels (A. Krizhevsky, "Learning multiple layers of features
/// from tiny images", 2009). `input`: float32 (32, 32, 3), red, green, blue, scaled to 0..1; `target`: int32 scalar.
struct Cifar {
  ByteImages train, test;
};

/// Selects one of the two labels of a CIFAR-100 image.
enum class CifarLabels : std::uint8_t {
  fine,   ///< 100 classes
  coarse  ///< 20 superclasses
};

/// Reads the binary version, which scripts/fetch_cifar.sh fetches: `data_batch_1.bin` … `data_batch_5.bin` and
/// `test_batch.bin` in `directory`, or in its folder `cifar-10-batches-bin`. A file is records of a label and 3072
/// bytes, the red, green and blue plane. Throws InputError that names the file, the record, and the expected and actual
/// value, if a file is missing or ends within a record, a label is out of range, or the training files differ in
/// length.
[[nodiscard]] Cifar load_cifar10(const std::filesystem::path& directory);

/// The images of one file.
[[nodiscard]] ByteImages read_cifar10_file(const std::filesystem::path& file);
/// The class names in `batches.meta.txt` in the folder of CIFAR-10's files, by label; empty if that file does not
/// exist.
[[nodiscard]] std::vector<std::string> cifar10_classes(const std::filesystem::path& directory);

/// Calls `tell` with the error of load_cifar10 for each damaged record and each missing file.
/// @return number of records
std::size_t check_cifar10(const std::filesystem::path& directory, FunctionRef<void(const InputError&)> tell);

/// The same for `train.bin` and `test.bin`, in `directory` or in its folder `cifar-100-binary`; a record begins with
/// the coarse and the fine label.
[[nodiscard]] Cifar load_cifar100(const std::filesystem::path& directory, CifarLabels labels = CifarLabels::fine);
std::size_t check_cifar100(const std::filesystem::path& directory, FunctionRef<void(const InputError&)> tell);

}  // namespace ronda
