// Prints the table of docs/strategies.md: what each strategy does with each feature, as conformance_test.cpp tries it.
#include <iostream>
#include <string>
#include <string_view>

#include "trainer/conformance_table.hpp"

using namespace ronda::test;

namespace {

std::string_view text_of(Holds holds) {
  switch (holds) {
    case Holds::bits: return "bits";
    case Holds::rounding: return "≈";
    case Holds::works: return "own";
    default: return "–";
  }
}

std::string heading_of(std::string_view name) {
  const std::size_t option = name.find(" --");
  if (option == std::string_view::npos) return "`" + std::string(name) + "`";
  return "`" + std::string(name.substr(0, option)) + "` `" + std::string(name.substr(option + 1)) + "`";
}

}  // namespace

int main() {
  std::string line = "| |", rule = "|---|";
  for (const StrategyColumn& column : columns_of_strategies()) {
    line += " " + heading_of(column.name) + " |";
    rule += "---|";
  }
  std::cout << line << "\n" << rule << "\n";
  for (const Feature& feature : rows_of_features()) {
    std::cout << "| " << feature.name << " |";
    for (const Holds holds : feature.cells) std::cout << " " << text_of(holds) << " |";
    std::cout << "\n";
  }
}
