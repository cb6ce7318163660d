#include <ronda/collectives/compression.hpp>
#include <ronda/runtime/core/error.hpp>

#include <array>
#include <string>
#include <utility>

namespace ronda {
namespace {

constexpr std::array<std::pair<Compression, std::string_view>, 5> names{{
    {Compression::none, "none"},
    {Compression::bf16, "bf16"},
    {Compression::fp16, "fp16"},
    {Compression::int8, "int8"},
    {Compression::automatic, "auto"},
}};

}  // namespace

Compression parse_compression(std::string_view name) {
  for (const auto& [compression, text] : names)
    if (text == name) return compression;
  throw InputError("'" + std::string(name) + "' is no compression: expected none, bf16, fp16, int8 or auto");
}

std::string_view name_of(Compression compression) noexcept {
  for (const auto& [known, text] : names)
    if (known == compression) return text;
  return "?";
}

}  // namespace ronda
