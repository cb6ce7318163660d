#include <ronda/collectives/host/node/two_shot.hpp>

#include <algorithm>

namespace ronda {

Task TwoShot::run() {
  barrier_.arrive();
  co_await barrier_;
  reduce_part();
  barrier_.arrive();
  co_await barrier_;
}

void TwoShot::reduce_part() {
  const Range mine = part();
  const std::size_t block = block_bytes / size_of(copies_.dtype), blocks = (mine.size() + block - 1) / block;
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t begin = mine.begin + (backwards_ ? blocks - 1 - i : i) * block;
    reduce_copies(reduction_, copies_.data, copies_.dtype, {begin, std::min(begin + block, mine.end)}, copies_.data);
  }
  backwards_ = !backwards_;
}

}  // namespace ronda
