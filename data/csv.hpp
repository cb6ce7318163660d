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
  char separator = ',';  ///< of ASCII; no quote, and no end of a line
  bool header = true;    ///< the first line names the columns; otherwise they are `column 1`, `column 2`, …
  std::vector<std::string> ignore = {};  ///< columns that are not read, by name
  std::vector<std::string> only = {};    ///< the columns that are read, by name; empty: all
  /// Called for each damaged row, which is left out; null: the first one is thrown.
  std::function<void(const InputError&)> on_damaged = {};
};

/// Numbers by rows and columns.
struct CsvTable {
  std::vector<std::string> columns;  ///< names, without those that were ignored
  std::vector<double> values;        ///< row after row
  bool index_left_out = false;       ///< the file's first column was an index: see read_csv
  bool counting_names = false;       ///< the names are numbers that count, so may have been a row: see read_csv

  [[nodiscard]] std::size_t rows() const noexcept { return columns.empty() ? 0 : values.size() / columns.size(); }
  [[nodiscard]] std::span<const double> row(std::size_t row) const {
    return std::span(values).subspan(row * columns.size(), columns.size());
  }
  /// What of the file is left out, or may have been a row, for people; empty: nothing.
  [[nodiscard]] std::string remark() const;
  /// Throws InputError that lists the names there are.
  [[nodiscard]] std::size_t column(const std::string& name) const;
};

/// Reads comma-separated values, gzipped or not, as RFC 4180 has them: fields may stand in double quotes, and then hold
/// separators, and quotes twice; lines end with LF or CRLF, or all with CR. A byte order mark, empty lines and blanks
/// around numbers are passed over, and so is an index as pandas writes it: a first column without a name, or called
/// `Unnamed: 0`, that counts the rows from 0, unless `only` is given. Throws InputError that names file, line and
/// column: for a field that is no finite number, or too large for a float32; a line with more or fewer fields than the
/// first; a name of a column that is read which comes twice, or is not UTF-8; a first line without the separator that
/// has another; one that is given in the options and is not there; and a file without rows. Where names are to be there
/// and the first line is numbers, it is an error too, lest a row be lost: unless they are whole numbers, each one more
/// than the one before, as some programs name columns; these are names, and the table has a remark.
[[nodiscard]] CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options = {});

}  // namespace ronda
