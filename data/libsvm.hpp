#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace ronda {

struct LibsvmOptions {
  /// Number of features; an index above it is refused. 0: the largest index of the file. Give test data the number of
  /// the training data.
  std::size_t features = 0;
  std::size_t first_index = 1;                    ///< index of the first feature: 1, or 0
  std::size_t most_bytes = std::size_t{4} << 30;  ///< a table whose values need more memory is refused
};

/// Labels, and features as rows of a dense table.
struct LibsvmTable {
  std::size_t features = 0;
  std::vector<float> labels;
  std::vector<float> values;  ///< row by row; features that a line does not name are 0

  [[nodiscard]] std::size_t rows() const noexcept { return labels.size(); }
  [[nodiscard]] std::span<const float> row(std::size_t row) const {
    return std::span(values).subspan(row * features, features);
  }
  /// The labels that occur, ascending: -1, 1.
  [[nodiscard]] std::vector<float> classes() const;
  /// For each row the place of its label among `classes`, as cross entropy takes it. Throws InputError that names the
  /// row if its label is not there.
  /// @param classes  ascending: those of the training data
  [[nodiscard]] std::vector<std::int32_t> class_numbers(std::span<const float> classes) const;
};

/// Reads the text format of LIBSVM, gzipped or not: a line per sample, `label index:value index:value …`, with
/// ascending indices. Skips empty lines, blanks, and what follows a `#`.
///
/// Throws InputError that names file and line, for
/// - a label or a value that is not a finite number, or is too large for a float32;
/// - a field that is not `index:value`, such as `qid:3`, and a list of labels;
/// - an index below the first or above the last, and indices that do not ascend;
/// - a file without samples, without features, or with more than fit into `most_bytes`.
[[nodiscard]] LibsvmTable read_libsvm(const std::filesystem::path& path, const LibsvmOptions& options = {});

}  // namespace ronda
