#include <ronda/collectives/host/algorithms/grid_exchange.hpp>
#include <ronda/collectives/host/transport/sub_transport.hpp>

#include <utility>
#include <vector>

namespace ronda {
namespace {

/// What each of the three steps draws.
enum Draws : std::uint64_t { in_row, in_column, handing_out };

Wire with_noise(const Wire& wire, Draws draws, int of = 0) {
  return {wire.compression, wire.noise.at(draws).at(static_cast<std::uint64_t>(of))};
}

}  // namespace

int GridExchange::columns_for(int ranks) noexcept {
  if (ranks <= most_direct) return 1;
  int columns = 1;
  for (int divisor = 1; divisor * divisor <= ranks; ++divisor)
    if (ranks % divisor == 0) columns = divisor;
  return columns;
}

GridExchange::GridExchange(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction,
                           const Wire& wire, int columns)
    : transport_(std::move(transport)),
      place_{transport_->size() / columns, columns, transport_->rank() / columns, transport_->rank() % columns},
      add_up_(row_of(*transport_, place_), data, reduction.unfinished(), with_noise(wire, in_row, place_.row),
              RingPart::reduce_scatter),
      across_rows_(
          column_of(*transport_, place_),
          data.part(part_of(data.count, static_cast<std::size_t>(place_.column), static_cast<std::size_t>(columns))),
          reduction, with_noise(wire, in_column, place_.column)),
      hand_out_(row_of(*transport_, place_), data, reduction, with_noise(wire, handing_out), RingPart::allgather) {}

Task GridExchange::run() {
  co_await add_up_.run();
  co_await across_rows_.run();
  co_await hand_out_.run();
}

void GridExchange::prepare() {
  Algorithm::prepare();
  for (Algorithm* step : {&add_up_, &across_rows_, &hand_out_}) step->prepare();
}

void GridExchange::visit(const std::string& name, StateVisitor& visitor) {
  add_up_.visit(name + ".row", visitor);
  across_rows_.visit(name + ".column", visitor);
  hand_out_.visit(name + ".out", visitor);
}

std::unique_ptr<Transport> GridExchange::row_of(Transport& all, const Place& place) {
  std::vector<int> members;
  for (int column = 0; column < place.columns; ++column) members.push_back(place.row * place.columns + column);
  return std::make_unique<SubTransport>(all, std::move(members));
}

std::unique_ptr<Transport> GridExchange::column_of(Transport& all, const Place& place) {
  std::vector<int> members;
  for (int row = 0; row < place.rows; ++row) members.push_back(row * place.columns + place.column);
  return std::make_unique<SubTransport>(all, std::move(members));
}

}  // namespace ronda
