#pragma once
// Test cases that every rank runs: RANK_CASE in place of TEST_CASE. Ranks are processes of mpirun or threads of one
// program (RONDA_TEST_THREADS), as the line of CMake says. Catch's assertions are for one thread; the macros below,
// which replace them, evaluate their arguments first and then report under a lock. A case has no sections and no
// generators. An exception in a CHECK ends the case.
#include <mutex>
#include <optional>
#include <sstream>
#include <string>

#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace ronda::test {

/// Held by the rank that reports.
inline std::mutex& reporting() {
  static std::mutex mutex;
  return mutex;
}

struct Assertion {
  const char* macro;
  const char* text;
  Catch::SourceLineInfo line;
  Catch::ResultDisposition::Flags disposition;
};

inline void report(const Assertion& assertion, const Catch::ITransientExpression& expression) {
  const std::lock_guard lock(reporting());
  Catch::AssertionHandler handler(assertion.macro, assertion.line, assertion.text, assertion.disposition);
  handler.handleExpr(expression);
  handler.complete();  // throws where a REQUIRE failed
}

template <class Value>
void report(const Assertion& assertion, Catch::ExprLhs<Value>&& value) {
  report(assertion, value.makeUnaryExpr());
}

template <class Exception, class Work>
bool throws(Work&& work) {
  try {
    work();
  } catch (const Exception&) {
    return true;
  }
  return false;
}

/// A text that is shown with assertions that fail while it exists, also those of other ranks.
class ReportedInfo {
 public:
  ReportedInfo(const Catch::SourceLineInfo& line, const std::string& text) {
    const std::lock_guard lock(reporting());
    message_.emplace(Catch::MessageBuilder("INFO", line, Catch::ResultWas::Info) << text);
  }
  ReportedInfo(const ReportedInfo&) = delete;
  ~ReportedInfo() {
    const std::lock_guard lock(reporting());
    message_.reset();
  }

 private:
  std::optional<Catch::ScopedMessage> message_;
};

}  // namespace ronda::test

#define RONDA_RANK_CASE(body, ...)                          \
  static void body();                                       \
  TEST_CASE(__VA_ARGS__) { ::ronda::test::on_ranks(body); } \
  static void body()
#define RANK_CASE(...) RONDA_RANK_CASE(INTERNAL_CATCH_UNIQUE_NAME(rank_case_), __VA_ARGS__)

// For each of some types: `TestType` is one.
#define RONDA_RANK_TYPES_CASE(body, test_case, ...)                   \
  template <class TestType>                                           \
  static void body();                                                 \
  test_case(__VA_ARGS__) { ::ronda::test::on_ranks(body<TestType>); } \
  template <class TestType>                                           \
  static void body()
#define RANK_TYPES_CASE(...) \
  RONDA_RANK_TYPES_CASE(INTERNAL_CATCH_UNIQUE_NAME(rank_case_), TEMPLATE_TEST_CASE, __VA_ARGS__)
#define RANK_TYPE_LIST_CASE(...) \
  RONDA_RANK_TYPES_CASE(INTERNAL_CATCH_UNIQUE_NAME(rank_case_), TEMPLATE_LIST_TEST_CASE, __VA_ARGS__)

#define RONDA_ASSERT(macro, disposition, text, ...)                                                          \
  do {                                                                                                       \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wparentheses\"")::ronda::test::report( \
        {macro, text, CATCH_INTERNAL_LINEINFO, Catch::ResultDisposition::Flags(disposition)},                \
        Catch::Decomposer() <= __VA_ARGS__);                                                                 \
    _Pragma("GCC diagnostic pop")                                                                            \
  } while (false)

#undef CHECK
#define CHECK(...) RONDA_ASSERT("CHECK", Catch::ResultDisposition::ContinueOnFailure, #__VA_ARGS__, __VA_ARGS__)
#undef CHECK_FALSE
#define CHECK_FALSE(...)                                                                                         \
  RONDA_ASSERT("CHECK_FALSE", Catch::ResultDisposition::ContinueOnFailure | Catch::ResultDisposition::FalseTest, \
               #__VA_ARGS__, __VA_ARGS__)
#undef REQUIRE
#define REQUIRE(...) RONDA_ASSERT("REQUIRE", Catch::ResultDisposition::Normal, #__VA_ARGS__, __VA_ARGS__)
#undef CHECK_NOTHROW
#define CHECK_NOTHROW(...)                                                                 \
  RONDA_ASSERT("CHECK_NOTHROW", Catch::ResultDisposition::ContinueOnFailure, #__VA_ARGS__, \
               !::ronda::test::throws<std::exception>([&] { static_cast<void>(__VA_ARGS__); }))
#undef CHECK_THROWS_AS
#define CHECK_THROWS_AS(expression, ...)                                                                      \
  RONDA_ASSERT("CHECK_THROWS_AS", Catch::ResultDisposition::ContinueOnFailure, #expression ", " #__VA_ARGS__, \
               ::ronda::test::throws<__VA_ARGS__>([&] { static_cast<void>(expression); }))
#undef CHECK_THAT
#define CHECK_THAT(value, matcher)                                                                \
  do {                                                                                            \
    const auto& checked_value = (value);                                                          \
    INFO(checked_value);                                                                          \
    RONDA_ASSERT("CHECK_THAT", Catch::ResultDisposition::ContinueOnFailure, #value ", " #matcher, \
                 (matcher).match(checked_value));                                                 \
  } while (false)
#undef INFO
#define INFO(...)                                                               \
  const ::ronda::test::ReportedInfo INTERNAL_CATCH_UNIQUE_NAME(reported_info_)( \
      CATCH_INTERNAL_LINEINFO, (std::ostringstream() << __VA_ARGS__).str())
#undef FAIL
#define FAIL(...)                                                                \
  do {                                                                           \
    INFO(__VA_ARGS__);                                                           \
    RONDA_ASSERT("FAIL", Catch::ResultDisposition::Normal, #__VA_ARGS__, false); \
  } while (false)
