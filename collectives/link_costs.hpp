#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/compression.hpp>

namespace ronda {

/// Seconds over bytes, as measured at some sizes: straight lines between them, and the last line goes on.
class CostCurve {
 public:
  struct Point {
    double bytes = 0, seconds = 0;
    bool operator==(const Point&) const = default;
  };

  CostCurve() = default;  ///< nothing was measured
  /// @param points  by ascending bytes. Where a longer message took less time, something disturbed the shorter one: it
  ///                is taken to last as long.
  explicit CostCurve(std::vector<Point> points);

  [[nodiscard]] bool empty() const noexcept { return points_.empty(); }
  [[nodiscard]] const std::vector<Point>& points() const noexcept { return points_; }
  /// Not where it is empty.
  [[nodiscard]] double operator()(double bytes) const noexcept;

  bool operator==(const CostCurve&) const = default;

 private:
  std::vector<Point> points_;
};

/// What messages cost between ranks that sit in one kind of place to each other, all of them sending at once.
struct MessageCosts {
  CostCurve exchange;  ///< a rank and the one half the world away send one another a message each
  /// A message of many that go around a ring, as many under way as a Ring has at most: so many come in a second.
  CostCurve flow;

  [[nodiscard]] bool empty() const noexcept { return exchange.empty(); }
  bool operator==(const MessageCosts&) const = default;
};

/// How long an allreduce took when it was tried, against what the formula has. It counts for allreduces of this size
/// alone: what is chosen for one size must not depend on which others were asked for before it.
struct Trial {
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::ring;
  Compression compression = Compression::none;
  std::size_t bytes = 0;  ///< that it was tried for; it may have been tried with fewer, see CostModel::trial_bytes
  double factor = 1;
  bool operator==(const Trial&) const = default;
};

/// What communication costs between the ranks of a group: a value, the same on all of them. Parts that the group has no
/// use for are empty.
struct LinkCosts {
  MessageCosts node;             ///< between ranks of one node
  MessageCosts network;          ///< between nodes, one rank of each
  MessageCosts crowded_network;  ///< between nodes, `streams` ranks of each at once
  int streams = 1;
  CostCurve window;            ///< an allreduce in the shared memory of a node, of so many bytes a rank
  double combine_seconds = 0;  ///< a byte: to add what came to one's own
  /// A byte of float32: to make it what is sent, and back. Of bf16, fp16, int8; the last counts for int4 and 2bit too.
  std::array<double, 3> pack_seconds{};
  std::vector<Trial> trials;  ///< of these very ranks

  /// In one line, to be kept.
  [[nodiscard]] std::string text() const;
  /// Throws InputError where it is no text of this version's.
  [[nodiscard]] static LinkCosts parse(std::string_view text);

  bool operator==(const LinkCosts&) const = default;
};

}  // namespace ronda
