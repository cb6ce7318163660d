#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ronda::test {

// Files of the formats that are read, byte by byte.

[[nodiscard]] std::string little_endian(std::uint64_t number, std::size_t bytes);
[[nodiscard]] std::string gzipped(const std::string& content);

/// A .npy file of this header.
[[nodiscard]] std::string npy_of(const std::string& dictionary, const std::string& values, int version = 1);
/// As numpy.save writes it.
[[nodiscard]] std::string npy(const std::string& type, const std::string& shape, const std::string& values);

struct ZipMember {
  std::string name, content;
  bool deflated = false;
};
/// As Python's zipfile writes it for numpy.savez, with zip64 fields in the members' own headers.
/// @param wide  in the directory too, as for large files
[[nodiscard]] std::string zip(const std::vector<ZipMember>& members, bool wide = false,
                              const std::string& comment = "");

}  // namespace ronda::test
