// Numbers as text, independent of the locale.
#include <ronda/core/text.hpp>

#include <array>
#include <string>

#include "support/catch.hpp"
#include "support/decimal_comma.hpp"

using namespace ronda;

TEST_CASE("numbers are written and read alike in a program with a decimal comma") {
  const test::DecimalComma comma;
  TextWriter text;
  text << 0.5 << ' ' << 1234567;
  CHECK(text.str() == "0.5 1234567");
  double number = 0;
  int whole = 0;
  REQUIRE((TextReader("0.5 1234567") >> number >> whole));
  CHECK(number == 0.5);
  CHECK(whole == 1234567);
  CHECK(formatted("%.2f %s", 0.5, "s") == "0.50 s");
  char* end = nullptr;
  CHECK(read_number("0.5,1", &end) == 0.5);
  CHECK(std::string(end) == ",1");
}

TEST_CASE("a text that is too long for its buffer is cut off, and its length is told") {
  std::array<char, 4> buffer{};
  CHECK(print_into(buffer, "%d", 12345) == 5);
  CHECK(std::string(buffer.data()) == "123");
  CHECK(formatted("%s", std::string(600, 'x').c_str()) == std::string(511, 'x'));
}
