#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/detail/gzip_file.hpp>
#include <ronda/data/detail/lines.hpp>
#include <ronda/data/libsvm.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

namespace ronda {
namespace {

/// A value of the table, by its place among the row's features.
struct Entry {
  std::size_t row, feature;
  float value;
};

/// Removes the next field, up to a blank, from the line; empty at its end.
std::string_view take_field(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view field = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(field.size());
  return field;
}

/// Throws InputError if `text` is not a finite float32.
float finite_number(std::string_view text, std::string_view field, const LineReader& reader) {
  std::string_view digits = text;
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  float number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument)
    throw reader.error("'" + shown(text) + "' in '" + shown(field) + "' is not a number");
  if (error == std::errc::result_out_of_range) number = static_cast<float>(read_number(std::string(digits).c_str()));
  if (!std::isfinite(number))
    throw reader.error("'" + shown(text) + "' in '" + shown(field) +
                       "' is not a finite number, or too large for a float32");
  return number;
}

/// Parses `index:value` of a row.
Entry entry_of(std::string_view field, std::size_t row, const LibsvmOptions& options, const LineReader& reader) {
  const std::size_t colon = field.find(':');
  const std::string_view index = field.substr(0, colon);
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(index.data(), index.data() + index.size(), number);
  if (colon == std::string_view::npos || error == std::errc::invalid_argument || end != index.data() + index.size())
    throw reader.error("expected index:value, found '" + shown(field) + "'");
  const bool overflows = error == std::errc::result_out_of_range;
  if (!overflows && number < options.first_index)
    throw reader.error("the index of '" + shown(field) + "' is below " + std::to_string(options.first_index) +
                       ", the first one; if indices count from 0, give " + setting("first_index", "0"));
  const std::size_t feature = number - options.first_index;
  if (overflows || feature >= options.most_bytes || (options.features > 0 && feature >= options.features))
    throw reader.error("the index of '" + shown(field) + "' is too large" +
                       (options.features > 0 ? " for " + std::to_string(options.features) + " features" : ""));
  return {row, feature, finite_number(field.substr(colon + 1), field, reader)};
}

/// The entries of all rows; fills the table's labels and number of features.
std::vector<Entry> read_entries(LineReader& reader, const LibsvmOptions& options, LibsvmTable& table) {
  std::vector<Entry> entries;
  for (std::optional<std::string_view> line = reader.next(); line; line = reader.next()) {
    std::string_view rest = line->substr(0, line->find('#'));
    const std::string_view label = take_field(rest);
    if (label.empty()) continue;
    table.labels.push_back(finite_number(label, label, reader));
    std::size_t next = 0;
    for (std::string_view field = take_field(rest); !field.empty(); field = take_field(rest)) {
      entries.push_back(entry_of(field, table.rows() - 1, options, reader));
      if (entries.back().feature < next) throw reader.error("the index of '" + shown(field) + "' does not ascend");
      next = entries.back().feature + 1;
    }
    table.features = std::max(table.features, next);
  }
  return entries;
}

}  // namespace

std::vector<float> LibsvmTable::classes() const {
  std::vector<float> all = labels;
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<std::int32_t> LibsvmTable::class_numbers(std::span<const float> classes) const {
  std::vector<std::int32_t> numbers;
  numbers.reserve(rows());
  for (std::size_t row = 0; row < rows(); ++row) {
    const auto found = std::ranges::lower_bound(classes, labels[row]);
    if (found == classes.end() || *found != labels[row])
      throw InputError("the label " + shortest(labels[row]) + " of row " + std::to_string(row) + " is not among the " +
                       std::to_string(classes.size()) + " classes");
    numbers.push_back(static_cast<std::int32_t>(found - classes.begin()));
  }
  return numbers;
}

LibsvmTable read_libsvm(const std::filesystem::path& path, const LibsvmOptions& options) {
  if (options.first_index > 1) throw InputError("read_libsvm: " + setting("first_index") + " is 0 or 1");
  const std::string text = whole_text(path);
  LineReader reader(text, path);
  LibsvmTable table;
  table.features = options.features;
  const std::vector<Entry> entries = read_entries(reader, options, table);
  if (table.rows() == 0) throw InputError(path.string() + " has no samples");
  if (table.features == 0) throw InputError(path.string() + " has no features");
  if (table.rows() > options.most_bytes / sizeof(float) / table.features)
    throw InputError(path.string() + ": " + std::to_string(table.rows()) + " rows of " +
                     std::to_string(table.features) + " features need more than " + human_bytes(options.most_bytes) +
                     " as a dense table; raise " + setting("most_bytes") + " if the memory is there");
  table.values.resize(table.rows() * table.features);
  for (const Entry& entry : entries) table.values[entry.row * table.features + entry.feature] = entry.value;
  return table;
}

}  // namespace ronda
