#include <ronda/collectives/node/two_shot.hpp>

namespace ronda {

Task TwoShot::run() {
  barrier_.arrive();
  co_await barrier_;
  const Range mine = copies_.part(static_cast<std::size_t>(copies_.rank), copies_.data.size());
  reduce_copies(reduction_, copies_.data, copies_.dtype, mine, copies_.data);
  barrier_.arrive();
  co_await barrier_;
}

}  // namespace ronda
