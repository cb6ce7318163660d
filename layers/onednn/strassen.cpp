#include <ronda/core/parallel.hpp>
#include <ronda/layers/onednn/strassen.hpp>
#include <ronda/layers/onednn/strassen_packing.hpp>

#include <algorithm>
#include <array>

namespace ronda::onednn {

using namespace strassen;

namespace {

constexpr std::int64_t most_quarter = 128;  ///< of the depth: a strip's factors stay in the second-level cache
constexpr std::int64_t floats_a_line = 16;

constexpr std::int64_t parts(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

/// A tile's start where nothing is added.
constexpr std::array<float, tile_columns> no_start{};

}  // namespace

/// a as strips of 48 rows, or b as panels of 128 columns.
struct Strassen::Operand {
  const float* first;
  Strides strides;
  std::int64_t lines, depth;
  std::int64_t width;  ///< lines of a strip
  void (*pack_strip)(const Side& side, std::int64_t quarter, float* factors);

  [[nodiscard]] std::int64_t strips() const { return parts(lines, width); }
  [[nodiscard]] std::int64_t floats(std::int64_t quarter) const { return products * factor_floats(quarter, width / 4); }
  /// The piece of the depth that begins at k.
  [[nodiscard]] Side side(std::int64_t strip, std::int64_t k) const {
    const std::int64_t line = strip * width;
    return {first + line * strides.line + k * strides.step, strides.line, strides.step, lines - line, depth - k};
  }
};

bool Strassen::suit_processor() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") != 0;
#else
  return false;
#endif
}

Strassen::Strassen(std::int64_t rows, std::int64_t depth, std::int64_t columns, Strides a, Strides b, int threads)
    : rows_(rows),
      depth_(depth),
      columns_(columns),
      a_(a),
      b_(b),
      quarter_(4 * parts(parts(depth, 4 * parts(depth, 4 * most_quarter)), 4)),
      threads_(threads) {}

Strassen::Operand Strassen::rows_of(const float* a) const { return {a, a_, rows_, depth_, tile_rows, pack_rows}; }
Strassen::Operand Strassen::columns_of(const float* b) const {
  return {b, b_, columns_, depth_, tile_columns, pack_columns};
}

std::size_t Strassen::scratch_bytes() const noexcept {
  const Operand a = rows_of(nullptr), b = columns_of(nullptr);
  const std::int64_t all_a = a.strips() * a.floats(quarter_), all_b = b.strips() * b.floats(quarter_);
  const std::int64_t floats =
      all_a < all_b ? all_a + threads_ * b.floats(quarter_) : all_b + threads_ * a.floats(quarter_);
  return static_cast<std::size_t>(floats) * sizeof(float);
}

/// What a strip is packed from, to be fetched in so many turns.
Ahead Strassen::ahead(const Operand& operand, std::int64_t strip, std::int64_t k, std::int64_t turns) const {
  const Side side = operand.side(strip, k);
  const std::int64_t lines = std::min(operand.width, side.lines), steps = std::min(4 * quarter_, side.steps);
  if (lines <= 0 || steps <= 0) return {};
  const bool along = side.step == 1;
  Ahead result{.from = side.first, .row = along ? side.line : side.step};
  result.lines = parts(along ? steps : lines, floats_a_line);
  result.last = (along ? lines : steps) * result.lines;
  result.burst = result.last / turns + 1;
  return result;
}

void Strassen::multiply(const Tile& tile, const float* bias, float* c, Ahead& next) const {
  const std::int64_t row = tile.strip * tile_rows, column = tile.panel * tile_columns;
  const Rows<float> first{c + row * columns_ + column, columns_};
  Destination to{first, first, rows_ - row, columns_ - column};
  if (tile.k == 0) to.start = {bias == nullptr ? no_start.data() : bias + column, 0};
  Partial partial;
  Factors factors{tile.a, tile.b, quarter_, nullptr};
  for (std::int64_t block = 0; block < blocks; ++block) {
    factors.later = factors.b + blocks * factor_floats(quarter_, product_columns);
    multiply_block(block, factors, to, partial, next);
    factors.a += blocks * factor_floats(quarter_, product_rows);
    factors.b = factors.later;
  }
}

/// The strips of one operand stay packed; those of the other, which has more, pass by one after the other: they are
/// packed into the second-level cache.
void Strassen::run(const float* a, const float* b, const float* bias, float* c, std::byte* scratch) const {
  const Operand by_rows = rows_of(a), by_columns = columns_of(b);
  const std::int64_t row_floats = by_rows.floats(quarter_), column_floats = by_columns.floats(quarter_);
  const bool rows_stay = by_rows.strips() * row_floats < by_columns.strips() * column_floats;
  const Operand &staying = rows_stay ? by_rows : by_columns, &passing = rows_stay ? by_columns : by_rows;
  const std::int64_t staying_floats = rows_stay ? row_floats : column_floats,
                     passing_floats = rows_stay ? column_floats : row_floats;
  auto* const stay = reinterpret_cast<float*>(scratch);
  float* const pass = stay + staying.strips() * staying_floats;
  const auto workers = static_cast<std::size_t>(threads_);
  for (std::int64_t k = 0; k < depth_; k += 4 * quarter_) {
    parallel_for(threads_, static_cast<std::size_t>(staying.strips()), [&](Range range) {
      for (auto i = static_cast<std::int64_t>(range.begin); i < static_cast<std::int64_t>(range.end); ++i)
        staying.pack_strip(staying.side(i, k), quarter_, stay + i * staying_floats);
    });
    parallel_for(threads_, workers, [&](Range range) {
      for (std::size_t worker = range.begin; worker < range.end; ++worker) {
        const Range mine = part_of(static_cast<std::size_t>(passing.strips()), worker, workers);
        const auto begin = static_cast<std::int64_t>(mine.begin), end = static_cast<std::int64_t>(mine.end);
        float* const packed = pass + static_cast<std::int64_t>(worker) * passing_floats;
        for (std::int64_t i = begin; i < end; ++i) {
          passing.pack_strip(passing.side(i, k), quarter_, packed);
          const std::int64_t turns = staying.strips() * products;
          Ahead next = i + 1 < end ? ahead(passing, i + 1, k, turns) : ahead(passing, begin, k + 4 * quarter_, turns);
          for (std::int64_t j = 0; j < staying.strips(); ++j) {
            const float* const stays = stay + j * staying_floats;
            multiply(rows_stay ? Tile{j, i, k, stays, packed} : Tile{i, j, k, packed, stays}, bias, c, next);
          }
        }
      }
    });
  }
}

}  // namespace ronda::onednn
