#pragma once
#include <functional>
#include <memory>
#include <string>

#include <ronda/collectives/host/algorithms/direct_exchange.hpp>
#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/host/transport/transport.hpp>
#include <ronda/collectives/host/wire_format.hpp>

namespace ronda {

/// DirectExchange for many ranks, in rows and columns, so that a rank has connections to about 2 sqrt(n) others and not
/// to all n.
///
/// Rank r sits in row r / columns and column r % columns. The data is cut into a chunk for each column. First each row
/// adds up: the rank of column c gets the row's sum of chunk c. Then each column makes its chunk the sum over all rows.
/// Then each row hands its chunks around. Six ranks in two rows of three, chunks a, b, c:
///
///     0 1 2     row 0:  a of 0+1+2 on rank 0     column 0:  a of all on ranks 0 and 3     row 0:  a, b, c on 0, 1, 2
///     3 4 5     row 1:  a of 3+4+5 on rank 3                                              row 1:  a, b, c on 3, 4, 5
///
/// A number is rounded four times, however many ranks there are; what is lost is added in the next run, as in
/// DirectExchange. The last rounding is the same in all rows, which have the same sums and draw the same noise, so all
/// ranks get the same bits.
///
/// Cost: 2(columns-1) + 2(rows-1) messages a rank and segment, and 2(columns-1)/columns + 2(rows-1)/n of the data's
/// bytes as the wire has them.
class GridExchange final : public Algorithm {
 public:
  /// Ranks between which a direct exchange is not too much.
  static constexpr int most_direct = 64;
  /// Of a grid for so many ranks: the divisor nearest to their square root; 1 where a direct exchange is the way: for
  /// few ranks, and for a prime number of them.
  [[nodiscard]] static int columns_for(int ranks) noexcept;

  /// As for DirectExchange.
  /// @param columns  a divisor of the transport's ranks; the same on every rank
  GridExchange(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction, const Wire& wire,
               int columns);

  /// Collective over the transport's ranks.
  Task run() override;
  void prepare() override;
  void visit_traffic(const std::function<void(Traffic&)>& visit) override { visit(*transport_); }
  void visit(const std::string& name, StateVisitor& visitor) override;
  [[nodiscard]] std::size_t memory() const noexcept override {
    return add_up_.memory() + across_rows_.memory() + hand_out_.memory();
  }

 private:
  struct Place {
    int rows, columns, row, column;
  };
  [[nodiscard]] static std::unique_ptr<Transport> row_of(Transport& all, const Place& place);
  [[nodiscard]] static std::unique_ptr<Transport> column_of(Transport& all, const Place& place);

  std::unique_ptr<Transport> transport_;
  Place place_;
  DirectExchange add_up_, across_rows_, hand_out_;
};

}  // namespace ronda
