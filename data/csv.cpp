#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/csv.hpp>
#include <ronda/data/detail/gzip_file.hpp>
#include <ronda/data/detail/lines.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace ronda {
namespace {

/// Takes lines apart.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::filesystem::path& path, char separator)
      : rest_(text), path_(path), separator_(separator) {}

  /// The fields of the next line that is not empty; false at the end. They are valid until the next call.
  bool next(std::vector<std::string>& fields) {
    while (!rest_.empty()) {
      line_ = next_line_;
      read_fields(fields);
      if (fields.size() > 1 || !fields.front().empty()) return true;
    }
    return false;
  }

  [[nodiscard]] InputError error(const std::string& text) const {
    return InputError(path_.string() + ", line " + std::to_string(line_) + ": " + text);
  }

 private:
  void read_fields(std::vector<std::string>& fields) {
    std::size_t count = 0;
    for (bool more = true; more;) {
      if (count == fields.size()) fields.emplace_back();
      more = read_field(fields[count++]);
    }
    fields.resize(count);
    ++next_line_;
  }

  /// Whether the line has another field.
  bool read_field(std::string& field) {
    field.clear();
    const bool quoted = rest_.starts_with('"');
    if (quoted) read_quoted(field);
    const std::size_t end = std::min(rest_.find_first_of(std::string{separator_, '\n'}), rest_.size());
    std::string_view plain = rest_.substr(0, end);
    const bool more = end < rest_.size() && rest_[end] == separator_;
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (!more && plain.ends_with('\r')) plain.remove_suffix(1);
    if (quoted && !plain.empty()) throw error("after a quoted field comes '" + shown(plain) + "', and no separator");
    field += plain;
    return more;
  }

  void read_quoted(std::string& field) {
    for (rest_.remove_prefix(1);;) {
      const std::size_t quote = rest_.find('"');
      if (quote == std::string_view::npos) throw error("a quote is opened and not closed");
      field += rest_.substr(0, quote);
      next_line_ += static_cast<std::size_t>(std::ranges::count(rest_.substr(0, quote), '\n'));
      rest_.remove_prefix(quote + 1);
      if (!rest_.starts_with('"')) return;
      field += '"';
      rest_.remove_prefix(1);
    }
  }

  std::string_view rest_;
  const std::filesystem::path& path_;
  char separator_;
  std::size_t line_ = 1, next_line_ = 1;
};

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

/// Nothing where it is none, which infinities and NaN are not; one that is too small for its type is 0, one that is too
/// large infinite.
std::optional<double> number_in(std::string_view field) {
  std::string_view text = without_blanks(field);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  if (text.find_first_of("iInN") != std::string_view::npos) return std::nullopt;
  double number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ptr != text.data() + text.size() || parsed.ec == std::errc::invalid_argument) return std::nullopt;
  if (parsed.ec == std::errc::result_out_of_range) number = read_number(std::string(text).c_str());
  return number;
}

/// Whether the field is a number with a decimal comma.
bool has_a_comma(std::string_view field) {
  std::string with_point(field);
  std::ranges::replace(with_point, ',', '.');
  return with_point != field && number_in(with_point).has_value();
}

double number_of(std::string_view field, const std::string& column, const CsvReader& reader) {
  const std::optional<double> number = number_in(field);
  if (number && std::isfinite(static_cast<float>(*number))) return *number;
  throw reader.error("'" + shown(field) + "' in column '" + shown(column) + "' " +
                     (field.empty()        ? "is empty; complete it, or"
                      : number             ? "is too large for a float32; give the column in other units, or"
                      : has_a_comma(field) ? "is no number: its decimal separator has to be a point; change it, or"
                                           : "is no finite number; mend it, or") +
                     " leave the line or the column out");
}

/// Of the first line; where that holds a row they are counted.
std::vector<std::string> names_of(const std::vector<std::string>& first, bool header) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < first.size(); ++i)
    names.push_back(header ? std::string(without_blanks(first[i])) : "column " + std::to_string(i + 1));
  return names;
}

/// What the first line may hold.
enum class FirstLine : std::uint8_t { words, counting_numbers, numbers };

/// Names may be numbers that count the columns, from whatever they begin with.
FirstLine kind_of(const std::vector<std::string>& first) {
  bool counts = true;
  std::optional<double> before;
  for (const std::string& field : first) {
    const std::optional<double> number = number_in(field);
    if (!number) return FirstLine::words;
    counts = counts && std::trunc(*number) == *number && (!before || *number == *before + 1);
    before = number;
  }
  return counts ? FirstLine::counting_numbers : FirstLine::numbers;
}

/// Throws if the first line has one field and contains another separator.
void check_separator(const std::string& first, char separator, const CsvReader& reader) {
  for (const char other : {';', '\t', '|', ','})
    if (const auto count = std::ranges::count(first, other); other != separator && count > 0) {
      const auto name = [](char each) { return each == '\t' ? std::string("\\t") : std::string(1, each); };
      throw reader.error("expected fields with '" + name(separator) + "' between them, found one with " +
                         std::to_string(count) + " times '" + name(other) +
                         "'; the separator is given by --separator '" + name(other) + "', in a program by .separator");
    }
}

/// Whether the first column is an index written by pandas: without a name, or with pandas' name for such a column, and
/// counting the rows from 0.
bool counts_rows(const CsvTable& table) {
  if (table.columns.size() < 2 || table.rows() < 2) return false;
  if (!table.columns.front().empty() && table.columns.front() != "Unnamed: 0") return false;
  for (std::size_t row = 0; row < table.rows(); ++row)
    if (table.row(row).front() != static_cast<double>(row)) return false;
  return true;
}

void leave_index_out(CsvTable& table) {
  const std::size_t columns = table.columns.size();
  std::vector<double> values;
  values.reserve(table.rows() * (columns - 1));
  for (std::size_t row = 0; row < table.rows(); ++row)
    values.insert(values.end(), table.row(row).begin() + 1, table.row(row).end());
  table.columns.erase(table.columns.begin());
  table.values = std::move(values);
  table.index_left_out = true;
}

void check_names(const std::vector<std::string>& names, const std::vector<bool>& kept, const CsvReader& reader) {
  std::map<std::string_view, std::size_t> times;
  for (const std::string& name : names) ++times[name];
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!kept[i]) continue;
    if (const std::string why = why_not_utf8(names[i]); !why.empty())
      throw reader.error("the name of a column: " + why);
    if (times[names[i]] > 1) throw reader.error("two columns are called '" + shown(names[i]) + "'");
  }
}

/// Which columns are read.
std::vector<bool> kept_columns(const std::vector<std::string>& names, const CsvOptions& options,
                               const std::filesystem::path& path) {
  std::vector<bool> kept(names.size(), options.only.empty());
  const auto set = [&](const std::string& name, bool keep) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end())
      throw InputError(path.string() + " has no column '" + shown(name) + "'" + (keep ? "" : " to leave out") +
                       "; it has " + listed(names, [](const std::string& each) { return shown(each); }));
    kept[static_cast<std::size_t>(found - names.begin())] = keep;
  };
  for (const std::string& name : options.only) set(name, true);
  for (const std::string& name : options.ignore) set(name, false);
  return kept;
}

}  // namespace

std::size_t CsvTable::column(const std::string& name) const {
  const auto found = std::ranges::find(columns, name);
  if (found == columns.end())
    throw InputError("there is no column '" + shown(name) + "'; there are " +
                     listed(columns, [](const std::string& each) { return shown(each); }));
  return static_cast<std::size_t>(found - columns.begin());
}

std::string CsvTable::remark() const {
  if (index_left_out) return "the first column of the table is left out: it has no name and counts the rows";
  if (counting_names)
    return "the numbers of the table's first line are taken for the names of the columns, because each is one more "
           "than the one before; if they are a row, put a line of names before them, or in a program read the file "
           "with "
           ".header = false";
  return "";
}

CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options) {
  if (static_cast<unsigned char>(options.separator) >= 0x80 ||
      std::string_view("\"\r\n").find(options.separator) != std::string_view::npos)
    throw InputError("read_csv: " + setting("separator") + " is a character of ASCII, no quote and no end of a line");
  const std::string text = whole_text(path);
  CsvReader reader(text, path, options.separator);
  std::vector<std::string> fields;
  if (!reader.next(fields)) throw InputError(path.string() + " is empty");
  if (fields.size() == 1) check_separator(fields.front(), options.separator, reader);
  const FirstLine first_line = options.header ? kind_of(fields) : FirstLine::words;
  if (first_line == FirstLine::numbers)
    throw reader.error(
        "expected names of columns, found numbers; put a line of names before them, or in a program "
        "read the file with .header = false");
  const std::vector<std::string> names = names_of(fields, options.header);
  const std::vector<bool> kept = kept_columns(names, options, path);
  check_names(names, kept, reader);
  CsvTable table;
  table.counting_names = first_line == FirstLine::counting_numbers;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (kept[i]) table.columns.push_back(names[i]);
  const auto add_row = [&] {
    if (fields.size() != names.size())
      throw reader.error("expected " + std::to_string(names.size()) + " fields as in the first line, found " +
                         std::to_string(fields.size()));
    for (std::size_t i = 0; i < names.size(); ++i)
      if (kept[i]) table.values.push_back(number_of(fields[i], names[i], reader));
  };
  for (bool there = !options.header || reader.next(fields); there; there = reader.next(fields)) {
    const std::size_t whole = table.values.size();
    try {
      add_row();
    } catch (const InputError& damage) {
      if (!options.on_damaged) throw;
      table.values.resize(whole);
      options.on_damaged(damage);
    }
  }
  if (table.rows() == 0) throw InputError(path.string() + " has no rows");
  if (options.only.empty() && counts_rows(table)) leave_index_out(table);
  return table;
}

}  // namespace ronda
