#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

namespace ronda {

/// Memory for gradients, which is used again: of fresh memory the system clears each page. It keeps as many pieces as
/// were in use at once.
class GradientPool {
 public:
  GradientPool() = default;
  GradientPool(const GradientPool&) = delete;

  struct GiveBack {
    GradientPool* pool = nullptr;
    std::size_t count = 0;
    void operator()(float* elements) const noexcept { pool->give_back(elements, count); }
  };
  /// Goes before its pool does.
  using Piece = std::unique_ptr<float[], GiveBack>;
  /// Its elements are whatever was there.
  [[nodiscard]] Piece take(std::size_t count) {
    auto& free = free_[count];
    if (free.empty()) return {std::make_unique_for_overwrite<float[]>(count).release(), {this, count}};
    Piece piece(free.back().release(), {this, count});
    free.pop_back();
    return piece;
  }

 private:
  void give_back(float* elements, std::size_t count) noexcept {
    std::unique_ptr<float[]> piece(elements);
    try {
      free_[count].push_back(std::move(piece));
    } catch (...) {  // no memory to keep it
    }
  }

  std::map<std::size_t, std::vector<std::unique_ptr<float[]>>> free_;  ///< by elements
};

}  // namespace ronda
