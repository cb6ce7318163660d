#include <ronda/collectives/compression.hpp>
#include <ronda/core/names.hpp>

namespace ronda {
namespace {

constexpr EnumNames<Compression, 7> compression_names{{
    {Compression::none, "none"},
    {Compression::bf16, "bf16"},
    {Compression::fp16, "fp16"},
    {Compression::int8, "int8"},
    {Compression::int4, "int4"},
    {Compression::two_bit, "2bit"},
    {Compression::automatic, "auto"},
}};

}  // namespace

Compression parse_compression(std::string_view name) { return parse_name(compression_names, name, "a compression"); }

std::string_view name_of(Compression compression) noexcept { return find_name(compression_names, compression); }

}  // namespace ronda
