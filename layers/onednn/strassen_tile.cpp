#include <ronda/layers/onednn/processor.hpp>
#include <ronda/layers/onednn/strassen_avx2.hpp>
#include <ronda/layers/onednn/strassen_avx512.hpp>
#include <ronda/layers/onednn/strassen_tile.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace ronda::onednn::strassen {

#if defined(__x86_64__)
namespace {

struct Avx512 {
  template <bool paired, int... terms>
  static void multiply(const Factors& factors, const Sum* sums, Ahead& ahead) {
    avx512::multiply<paired, terms...>(factors, sums, ahead);
  }
};
struct Avx2 {
  template <bool paired, int... terms>
  static void multiply(const Factors& factors, const Sum* sums, Ahead& ahead) {
    avx2::multiply<paired, terms...>(factors, sums, ahead);
  }
};

/// The inner level: one block, and a sum with it for each of `terms`.
template <class Kernel, bool paired, int... terms>
void multiply_inner(Factors factors, const Sum* sums, Ahead& ahead) {
  constexpr int count = sizeof...(terms);
  alignas(64) float p1[kernel_rows * kernel_columns], u2[kernel_rows * kernel_columns],
      u3[kernel_rows * kernel_columns];
  const auto rows = [](float* first) { return Rows<float>{first, kernel_columns}; };
  std::array<Sum, count + 1> now;
  const auto keep = [&](float* to, float* term) { now[0] = {rows(to), {rows(term)}}; };
  const auto finish = [&](int index, std::int64_t row, std::int64_t column, float* term) {
    for (int i = 0; i < count; ++i) {
      now[index + i].to = sums[i].to.at(row, column);
      now[index + i].terms = {rows(term), sums[i].terms[0].at(row, column), sums[i].terms[1].at(row, column)};
      now[index + i].unscale = sums[i].unscale;
    }
  };
  const auto go_on = [&factors] {
    factors.a += factor_floats(factors.depth, kernel_rows);
    factors.b += factor_floats(factors.depth, kernel_columns);
    factors.later += factors.depth * lanes;
  };
  keep(p1, nullptr);
  Kernel::template multiply<paired, 0>(factors, now.data(), ahead);
  go_on();
  finish(0, 0, 0, p1);  // + p2
  Kernel::template multiply<paired, terms + 1 ...>(factors, now.data(), ahead);
  go_on();
  keep(u2, p1);  // + p6
  Kernel::template multiply<paired, 1>(factors, now.data(), ahead);
  go_on();
  keep(u3, u2);  // + p7
  Kernel::template multiply<paired, 1>(factors, now.data(), ahead);
  go_on();
  finish(0, kernel_rows, 0, u3);  // - p4
  Kernel::template multiply<paired, terms + 1 ...>(factors, now.data(), ahead);
  go_on();
  keep(p1, u2);  // + p5
  finish(1, kernel_rows, kernel_columns, u3);
  Kernel::template multiply<paired, 1, terms + 1 ...>(factors, now.data(), ahead);
  go_on();
  finish(0, 0, kernel_columns, p1);  // + p3
  Kernel::template multiply<paired, terms + 1 ...>(factors, now.data(), ahead);
}

/// The outer level: where the block's result goes. From block 5 on, p1 is u2 + p5.
template <class Kernel, bool paired>
void multiply_outer(std::int64_t block, const Factors& factors, const Destination& to, Partial& partial, Ahead& ahead) {
  const Rows<float> p1{partial.p1.data(), block_columns}, u2{partial.u2.data(), block_columns},
      u3{partial.u3.data(), block_columns};
  const auto finish = [&](const Rows<float>& term) { return Sum{to.c, {term, to.start}, to.unscale}; };
  std::array<Sum, 2> sums;
  const auto keep = [&](const Rows<float>& where, const Rows<float>& term) { sums[0] = {where, {term}}; };
  switch (block) {
    case 0: keep(p1, {}); return multiply_inner<Kernel, paired, 0>(factors, sums.data(), ahead);
    case 2: keep(u2, p1); return multiply_inner<Kernel, paired, 1>(factors, sums.data(), ahead);
    case 3: keep(u3, u2); return multiply_inner<Kernel, paired, 1>(factors, sums.data(), ahead);
    case 5:
      keep(p1, u2);
      sums[1] = finish(u3);
      return multiply_inner<Kernel, paired, 1, 2>(factors, sums.data(), ahead);
    case 1:
    case 6: sums[0] = finish(p1); return multiply_inner<Kernel, paired, 2>(factors, sums.data(), ahead);
    default: sums[0] = finish(u3); return multiply_inner<Kernel, paired, 2>(factors, sums.data(), ahead);
  }
}

struct Place {
  std::int64_t row, column;
};
/// c's part that a block finishes, if any.
constexpr std::array<std::optional<Place>, blocks> finished{std::nullopt,           Place{0, 0},
                                                            std::nullopt,           std::nullopt,
                                                            Place{block_rows, 0},   Place{block_rows, block_columns},
                                                            Place{0, block_columns}};

}  // namespace

void multiply_block(std::int64_t block, const Factors& factors, const Destination& to, std::int64_t rows,
                    std::int64_t columns, Partial& partial, Ahead& ahead) {
  const auto multiply = factors.paired ? multiply_outer<Avx512, true>
                        : has_avx512() ? multiply_outer<Avx512, false>
                                       : multiply_outer<Avx2, false>;
  if (!finished[block]) return multiply(block, factors, to, partial, ahead);
  const auto [row, column] = *finished[block];
  const Destination part{to.start.at(row, column), to.c.at(row, column), to.unscale};
  const std::int64_t some_rows = std::clamp<std::int64_t>(rows - row, 0, block_rows),
                     some_columns = std::clamp<std::int64_t>(columns - column, 0, block_columns);
  if (some_rows == block_rows && some_columns == block_columns) return multiply(block, factors, part, partial, ahead);
  alignas(64) std::array<float, block_rows * block_columns> whole{};
  const Rows<float> inner{whole.data(), block_columns};
  for (std::int64_t r = 0; r < some_rows; ++r)
    std::copy_n(part.start.first + r * part.start.row, some_columns, whole.data() + r * block_columns);
  multiply(block, factors, {inner, inner, to.unscale}, partial, ahead);
  for (std::int64_t r = 0; r < some_rows; ++r)
    std::copy_n(whole.data() + r * block_columns, some_columns, part.c.first + r * part.c.row);
}

#else
void multiply_block(std::int64_t, const Factors&, const Destination&, std::int64_t, std::int64_t, Partial&, Ahead&) {
}  // `suits_processor` says no
#endif

}  // namespace ronda::onednn::strassen
