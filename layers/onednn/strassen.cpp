#include <ronda/core/parallel.hpp>
#include <ronda/layers/onednn/processor.hpp>
#include <ronda/layers/onednn/strassen.hpp>
#include <ronda/layers/onednn/strassen_tile.hpp>
#include <ronda/layers/onednn/sums.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace ronda::onednn {

namespace {

/// Of the depth: a passing strip's factors, 304 KB of rows or 806 KB of columns, lie in a second-level cache of 1 MiB.
constexpr std::int64_t most_quarter = 128;

/// A tile's start where nothing is added.
constexpr std::array<float, strassen::tile_columns> no_start{};

/// Whether a line of a factor is all zeros.
bool is_zero(const float* factor, Strassen::Strides strides, std::int64_t line, std::int64_t depth) {
  const float* const first = factor + line * strides.line;
  for (std::int64_t k = 0; k < depth; ++k)
    if (first[k * strides.step] != 0) return false;
  return true;
}

}  // namespace

/// a as strips of 48 rows, or b as panels of 128 columns.
struct Strassen::Operand {
  const float* first;
  Strides strides;
  std::int64_t lines, depth;
  std::int64_t width;  ///< lines of a strip
  void (*pack_strip)(const strassen::Side& side, std::int64_t quarter, bool paired, float* factors);

  [[nodiscard]] std::int64_t strips() const { return parts(lines, width); }
  [[nodiscard]] std::int64_t floats(std::int64_t quarter) const { return strassen::strip_floats(quarter, width / 4); }
  /// The piece of the depth that begins at k.
  [[nodiscard]] strassen::Side side(std::int64_t strip, std::int64_t k) const {
    const std::int64_t line = strip * width;
    return {first + line * strides.line + k * strides.step, strides.line, strides.step, lines - line, depth - k};
  }
};

bool Strassen::suit_processor() noexcept { return has_avx512(); }

Strassen::Strassen(std::int64_t rows, std::int64_t depth, std::int64_t columns, Strides a, Strides b, Steps steps,
                   int threads)
    : rows_(rows),
      depth_(depth),
      columns_(columns),
      a_(a),
      b_(b),
      paired_(steps == Steps::paired),
      quarter_(4 * parts(parts(depth, 4 * parts(depth, 4 * most_quarter)), 4)),
      threads_(threads) {}

/// The strips of one operand stay packed, 49 floats for 16 numbers of a piece of the depth; those of the other, which
/// has more, pass by one after the other: they are packed into the second-level cache.
struct Strassen::Roles {
  Operand staying, passing;
  bool rows_stay;
};
Strassen::Roles Strassen::roles(const float* a, const float* b) const {
  const Operand rows{a, a_, rows_, depth_, strassen::tile_rows, strassen::pack_rows},
      columns{b, b_, columns_, depth_, strassen::tile_columns, strassen::pack_columns};
  const bool rows_stay = rows.strips() * rows.floats(quarter_) < columns.strips() * columns.floats(quarter_);
  return rows_stay ? Roles{rows, columns, true} : Roles{columns, rows, false};
}

std::size_t Strassen::scratch_bytes() const noexcept {
  const auto [staying, passing, rows_stay] = roles(nullptr, nullptr);
  return static_cast<std::size_t>(staying.strips() * staying.floats(quarter_) + threads_ * passing.floats(quarter_)) *
         sizeof(float);
}

/// What a strip is packed from, to be fetched in so many turns.
strassen::Ahead Strassen::source_of(const Operand& operand, std::int64_t strip, std::int64_t k,
                                    std::int64_t turns) const {
  const strassen::Side side = operand.side(strip, k);
  const std::int64_t lines = std::min(operand.width, side.lines), steps = std::min(4 * quarter_, side.steps);
  if (lines <= 0 || steps <= 0) return {};
  const bool along = side.step == 1;
  strassen::Ahead result{.from = side.first, .row = along ? side.line : side.step};
  result.lines = parts(along ? steps : lines, strassen::lanes);
  result.last = (along ? lines : steps) * result.lines;
  result.burst = result.last / turns + 1;
  return result;
}

void Strassen::multiply(const Piece& piece, const Tile& tile, strassen::Ahead& next) const {
  const std::int64_t row = tile.strip * strassen::tile_rows, column = tile.panel * strassen::tile_columns;
  const strassen::Rows<float> first{piece.c + row * columns_ + column, columns_};
  strassen::Destination to{first, first,
                           strassen::unscale(tile.a, quarter_, strassen::kernel_rows) *
                               strassen::unscale(tile.b, quarter_, strassen::kernel_columns)};
  if (piece.k == 0) to.start = {piece.bias == nullptr ? no_start.data() : piece.bias + column, 0};
  strassen::Partial partial;
  const bool paired = paired_ && strassen::balanced(tile.a, quarter_, strassen::kernel_rows) == 1 &&
                      strassen::balanced(tile.b, quarter_, strassen::kernel_columns) == 1;
  strassen::Factors factors{tile.a, tile.b, quarter_, nullptr, paired};
  for (std::int64_t block = 0; block < strassen::blocks; ++block) {
    factors.later = factors.b + strassen::blocks * strassen::factor_floats(quarter_, strassen::kernel_columns);
    strassen::multiply_block(block, factors, to, rows_ - row, columns_ - column, partial, next);
    factors.a += strassen::blocks * strassen::factor_floats(quarter_, strassen::kernel_rows);
    factors.b = factors.later;
  }
}

/// A thread's strips, `begin` to `end`, with all that stay.
void Strassen::pass_by(const Roles& roles, const Piece& piece, std::int64_t begin, std::int64_t end,
                       float* packed) const {
  const Operand &staying = roles.staying, &passing = roles.passing;
  const std::int64_t turns = staying.strips() * strassen::products;
  for (std::int64_t i = begin; i < end; ++i) {
    passing.pack_strip(passing.side(i, piece.k), quarter_, paired_, packed);
    auto next = i + 1 < end ? source_of(passing, i + 1, piece.k, turns)
                            : source_of(passing, begin, piece.k + 4 * quarter_, turns);
    for (std::int64_t j = 0; j < staying.strips(); ++j) {
      const float* const stays = piece.staying + j * staying.floats(quarter_);
      multiply(piece, roles.rows_stay ? Tile{j, i, stays, packed} : Tile{i, j, packed, stays}, next);
    }
  }
}

void Strassen::run(const float* a, const float* b, const float* bias, float* c, std::byte* scratch) const {
  const Roles roles = this->roles(a, b);
  const Operand &staying = roles.staying, &passing = roles.passing;
  auto* const stay = reinterpret_cast<float*>(scratch);
  float* const packed = stay + staying.strips() * staying.floats(quarter_);
  const auto workers = static_cast<std::size_t>(threads_);
  for (std::int64_t k = 0; k < depth_; k += 4 * quarter_) {
    parallel_for(threads_, static_cast<std::size_t>(staying.strips()), [&](Range range) {
      for (auto i = static_cast<std::int64_t>(range.begin); i < static_cast<std::int64_t>(range.end); ++i)
        staying.pack_strip(staying.side(i, k), quarter_, paired_, stay + i * staying.floats(quarter_));
    });
    parallel_for(threads_, workers, [&](Range range) {
      for (std::size_t worker = range.begin; worker < range.end; ++worker) {
        const Range mine = part_of(static_cast<std::size_t>(passing.strips()), worker, workers);
        pass_by(roles, {k, stay, bias, c}, static_cast<std::int64_t>(mine.begin), static_cast<std::int64_t>(mine.end),
                packed + static_cast<std::int64_t>(worker) * passing.floats(quarter_));
      }
    });
  }
  write_zero_lines(a, b, bias, c);
}

/// Where a factor's line is 0, sets c to the bias, because the product has roundings of the tile's other lines there.
/// Numbers that are not finite stay.
void Strassen::write_zero_lines(const float* a, const float* b, const float* bias, float* c) const {
  const auto write = [&](std::int64_t row, std::int64_t column) {
    float& sum = c[row * columns_ + column];
    if (std::isfinite(sum)) sum = bias == nullptr ? 0.0F : bias[column];
  };
  const auto each_zero = [&](const float* factor, Strides strides, std::int64_t lines, auto&& write_line) {
    parallel_for(threads_, static_cast<std::size_t>(lines), [&](Range range) {
      for (auto line = static_cast<std::int64_t>(range.begin); line < static_cast<std::int64_t>(range.end); ++line)
        if (is_zero(factor, strides, line, depth_)) write_line(line);
    });
  };
  each_zero(a, a_, rows_, [&](std::int64_t row) {
    for (std::int64_t column = 0; column < columns_; ++column) write(row, column);
  });
  each_zero(b, b_, columns_, [&](std::int64_t column) {
    for (std::int64_t row = 0; row < rows_; ++row) write(row, column);
  });
}

}  // namespace ronda::onednn
