#include <ronda/core/parallel.hpp>
#include <ronda/layers/onednn/strassen.hpp>
#include <ronda/layers/onednn/strassen_packing.hpp>

#include <algorithm>
#include <array>

namespace ronda::onednn {

using strassen::products;
using strassen::tile_columns;
using strassen::tile_rows;

struct Strassen::Operands {
  const float *a, *b, *bias;
  float *c, *panels;
  std::int64_t k;  ///< where the piece begins
};

namespace {

constexpr std::int64_t most_quarter = 128;  ///< of the depth
constexpr std::int64_t strips_at_once =
    2;  ///< whose factors, with those of a block of a panel, stay in the second-level cache

constexpr std::int64_t parts(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

/// A tile's start where nothing is added.
constexpr std::array<float, tile_columns> no_start{};

}  // namespace

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
      strips_(parts(rows, tile_rows)),
      panels_(parts(columns, tile_columns)),
      threads_(threads) {}

std::int64_t Strassen::panel_floats() const noexcept {
  return products * strassen::factor_floats(quarter_, strassen::product_columns);
}
std::int64_t Strassen::strip_floats() const noexcept {
  return products * strassen::factor_floats(quarter_, strassen::product_rows);
}
std::int64_t Strassen::worker_floats() const noexcept {
  return strips_at_once * (strip_floats() + static_cast<std::int64_t>(sizeof(strassen::Partial) / sizeof(float)));
}
std::size_t Strassen::scratch_bytes() const noexcept {
  return static_cast<std::size_t>(panels_ * panel_floats() + threads_ * worker_floats()) * sizeof(float);
}

void Strassen::pack_panels(const Operands& with, Range panels) const {
  for (auto panel = static_cast<std::int64_t>(panels.begin); panel < static_cast<std::int64_t>(panels.end); ++panel) {
    const std::int64_t column = panel * tile_columns;
    strassen::pack_columns(
        {with.b + column * b_.line + with.k * b_.step, b_.line, b_.step, columns_ - column, depth_ - with.k}, quarter_,
        with.panels + panel * panel_floats());
  }
}

/// What strips are packed from, in the piece of the depth that begins at k.
strassen::Ahead Strassen::ahead(const float* a, Range strips, std::int64_t k) const {
  constexpr std::int64_t floats_a_line = 16;
  const std::int64_t row = static_cast<std::int64_t>(strips.begin) * tile_rows;
  const std::int64_t lines = std::min(static_cast<std::int64_t>(strips.size()) * tile_rows, rows_ - row),
                     steps = std::min(4 * quarter_, depth_ - k);
  if (steps <= 0 || lines <= 0) return {};
  strassen::Ahead result{.from = a + row * a_.line + k * a_.step};
  result.row = std::max(a_.line, a_.step);
  result.lines = parts(a_.step == 1 ? steps : lines, floats_a_line);
  result.last = (a_.step == 1 ? lines : steps) * result.lines;
  result.burst = result.last / (panels_ * products) + 1;
  return result;
}

/// Strips, whose factors stay in the second-level cache, with all panels.
void Strassen::multiply_strips(const Operands& with, Range strips, float* scratch, strassen::Ahead ahead) const {
  const auto first = static_cast<std::int64_t>(strips.begin), count = static_cast<std::int64_t>(strips.size());
  auto* const partial = reinterpret_cast<strassen::Partial*>(scratch + strips_at_once * strip_floats());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = (first + i) * tile_rows;
    strassen::pack_rows({with.a + row * a_.line + with.k * a_.step, a_.line, a_.step, rows_ - row, depth_ - with.k},
                        quarter_, scratch + i * strip_floats());
  }
  for (std::int64_t panel = 0; panel < panels_; ++panel)
    for (std::int64_t block = 0; block < strassen::blocks; ++block)
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t row = (first + i) * tile_rows, column = panel * tile_columns;
        const strassen::Rows<float> c{with.c + row * columns_ + column, columns_};
        strassen::Destination to{c, c, rows_ - row, columns_ - column};
        if (with.k == 0) to.start = {with.bias == nullptr ? no_start.data() : with.bias + column, 0};
        const float* const b = with.panels + panel * panel_floats() + block * panel_floats() / strassen::blocks;
        const strassen::Factors factors{
            scratch + i * strip_floats() + block * strip_floats() / strassen::blocks, b, quarter_,
            b + panel_floats() / strassen::blocks + i * panel_floats() / strassen::blocks / 2};
        strassen::multiply_block(block, factors, to, partial[i], ahead);
      }
}

/// A thread's strips.
void Strassen::multiply_part(const Operands& with, Range strips, float* scratch) const {
  const auto some = [&strips](std::size_t begin) { return Range{begin, std::min(begin + strips_at_once, strips.end)}; };
  for (std::size_t begin = strips.begin; begin < strips.end; begin += strips_at_once) {
    const Range now = some(begin);
    const strassen::Ahead next = now.end < strips.end ? ahead(with.a, some(now.end), with.k)
                                                      : ahead(with.a, some(strips.begin), with.k + 4 * quarter_);
    multiply_strips(with, now, scratch, next);
  }
}

void Strassen::run(const float* a, const float* b, const float* bias, float* c, std::byte* scratch) const {
  auto* const panels = reinterpret_cast<float*>(scratch);
  const auto workers = static_cast<std::size_t>(threads_);
  for (std::int64_t k = 0; k < depth_; k += 4 * quarter_) {
    const Operands with{a, b, bias, c, panels, k};
    parallel_for(threads_, static_cast<std::size_t>(panels_), [&](Range range) { pack_panels(with, range); });
    parallel_for(threads_, workers, [&](Range range) {
      for (std::size_t worker = range.begin; worker < range.end; ++worker)
        multiply_part(with, part_of(static_cast<std::size_t>(strips_), worker, workers),
                      panels + panels_ * panel_floats() + static_cast<std::int64_t>(worker) * worker_floats());
    });
  }
}

}  // namespace ronda::onednn
