#pragma once
#include <locale>
#include <string>

namespace ronda::test {

/// During its lifetime the global locale has a decimal comma and groups digits by points, as German does; no such
/// locale needs to be installed.
class DecimalComma {
 public:
  DecimalComma() : before_(std::locale::global(std::locale(std::locale::classic(), new Punctuation))) {}
  ~DecimalComma() { std::locale::global(before_); }
  DecimalComma(const DecimalComma&) = delete;
  DecimalComma& operator=(const DecimalComma&) = delete;

 private:
  struct Punctuation final : std::numpunct<char> {
    [[nodiscard]] char do_decimal_point() const override { return ','; }
    [[nodiscard]] char do_thousands_sep() const override { return '.'; }
    [[nodiscard]] std::string do_grouping() const override { return "\3"; }
  };
  std::locale before_;
};

}  // namespace ronda::test
