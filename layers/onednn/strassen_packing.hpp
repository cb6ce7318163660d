#pragma once
#include <cstdint>

namespace ronda::onednn::strassen {

/// What a tile needs of a product's factor: lines (rows of a or columns of b) from a piece of the depth on. An element
/// (i, k) lies at first[i · line + k · step]; k goes along the depth. What is not there counts as zeros.
struct Side {
  const float* first;
  std::int64_t line, step;    ///< one of them is 1
  std::int64_t lines, steps;  ///< so many are there
};

/// The factors of 49 products, made of 4 x 4 parts of 48 rows of a, (depth, 12) each and one after another at
/// `factor_floats`: first the outer level's sums, then the inner level's sums of these.
/// @param depth    of each part, a quarter of the piece: a multiple of 4
/// @param paired   whether steps are paired (strassen.hpp): then a balanced strip is scaled, and its `pair_sums` made
/// @param factors  the caller's, strip_floats(depth, 12) floats, apart from a's memory
void pack_rows(const Side& a, std::int64_t depth, bool paired, float* factors);
/// The same of 128 columns of b, (depth, 32) each.
void pack_columns(const Side& b, std::int64_t depth, bool paired, float* factors);

}  // namespace ronda::onednn::strassen
