#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/compression.hpp>

namespace ronda {

/// Seconds as a function of bytes, measured at some sizes: linear interpolation between them, and the last line
/// extrapolates beyond the largest.
class CostCurve {
 public:
  struct Point {
    double bytes = 0, seconds = 0;
    bool operator==(const Point&) const = default;
  };

  CostCurve() = default;  ///< no measurements
  /// @param points  by ascending bytes. If a longer message took less time, the shorter one was disturbed, and its time
  ///                is lowered to that of the longer one.
  explicit CostCurve(std::vector<Point> points);

  [[nodiscard]] bool empty() const noexcept { return points_.empty(); }
  [[nodiscard]] const std::vector<Point>& points() const noexcept { return points_; }
  /// Requires a curve that is not empty.
  [[nodiscard]] double operator()(double bytes) const noexcept;

  bool operator==(const CostCurve&) const = default;

 private:
  std::vector<Point> points_;
};

/// Costs of messages between ranks at one level of the topology, with all ranks sending at once.
struct MessageCosts {
  CostCurve exchange;  ///< two ranks, half the world apart, send each other a message at the same time
  /// Time per message in a ring, with as many messages in flight as `Ring` allows: the inverse of the message rate.
  CostCurve flow;

  [[nodiscard]] bool empty() const noexcept { return exchange.empty(); }
  bool operator==(const MessageCosts&) const = default;
};

/// Measured time of an allreduce, relative to its formula. Applies only to allreduces of this size: the choice for one
/// size must not depend on which other sizes were planned earlier.
struct Trial {
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::ring;
  Compression compression = Compression::none;
  std::size_t bytes = 0;  ///< size to which it applies; the timed size may be smaller, see CostModel::trial_bytes
  double factor = 1;      ///< measured time divided by the time of the formula
  bool operator==(const Trial&) const = default;
};

/// Costs of communication between the ranks of a group: a value, equal on all of them. Members that do not apply to the
/// group are empty.
struct LinkCosts {
  MessageCosts node;             ///< between ranks of one node
  MessageCosts network;          ///< between nodes, one rank per node
  MessageCosts crowded_network;  ///< between nodes, `streams` ranks per node at once
  int streams = 1;
  CostCurve window;            ///< allreduce in a node's shared memory, by bytes per rank
  double combine_seconds = 0;  ///< per byte: to add received data to a rank's own
  /// Per byte of float32: to compress and decompress. For bf16, fp16, int8; the last also applies to int4 and 2bit.
  std::array<double, 3> pack_seconds{};
  std::vector<Trial> trials;  ///< measured between these ranks

  /// One line of text, for storing.
  [[nodiscard]] std::string text() const;
  /// Parses the result of `text`. Throws InputError for any other text, or one of another version.
  [[nodiscard]] static LinkCosts parse(std::string_view text);

  bool operator==(const LinkCosts&) const = default;
};

}  // namespace ronda
