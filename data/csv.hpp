#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>

namespace ronda {

struct CsvOptions {
  char separator = ',';  ///< an ASCII character, except a quote or an end of line
  bool header = true;    ///< the first line names the columns; otherwise they are `column 1`, `column 2`, …
  std::vector<std::string> ignore = {};  ///< names of columns to skip
  std::vector<std::string> only = {};    ///< names of the columns to read; empty: all
  /// Called for each damaged row, which is skipped; null: the first one is thrown.
  std::function<void(const InputError&)> on_damaged = {};
};

/// Numbers by rows and columns.
struct CsvTable {
  std::vector<std::string> columns;  ///< names, without ignored columns
  std::vector<double> values;        ///< row by row
  bool index_left_out = false;       ///< the file's first column was an index and is skipped: see read_csv
  bool counting_names = false;       ///< the names are consecutive numbers, and may have been a row: see read_csv

  [[nodiscard]] std::size_t rows() const noexcept { return columns.empty() ? 0 : values.size() / columns.size(); }
  [[nodiscard]] std::span<const double> row(std::size_t row) const {
    return std::span(values).subspan(row * columns.size(), columns.size());
  }
  /// A message about a skipped index column or a header that may be a row; empty: neither.
  [[nodiscard]] std::string remark() const;
  /// Throws InputError that lists the names if there is no such column.
  [[nodiscard]] std::size_t column(const std::string& name) const;
};

/// Reads comma-separated values, gzipped or not, as in RFC 4180: fields may be in double quotes, and may then contain
/// separators and doubled quotes; lines end with LF or CRLF, or all with CR. Skips a byte order mark, empty lines and
/// blanks around numbers. Unless `only` is given, it also skips an index column as pandas writes it: a first column
/// without a name, or named `Unnamed: 0`, that counts the rows from 0.
///
/// Throws InputError that names file, line and column, for
/// - a field that is not a finite number, or is too large for a float32;
/// - a line with more or fewer fields than the first;
/// - a column to be read whose name occurs twice or is not UTF-8;
/// - a first line without the separator but with another one;
/// - a column that is named in the options but does not exist;
/// - a file without rows;
/// - a first line of numbers if a header is expected, so that no row is lost. Consecutive integers are accepted as
///   names, because some programs write them; the table then has a remark.
[[nodiscard]] CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options = {});

}  // namespace ronda
