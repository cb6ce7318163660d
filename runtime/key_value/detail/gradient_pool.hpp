#pragma once
#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include <ronda/core/parallel.hpp>

namespace ronda {

/// Memory for gradients and values, which is reused: of fresh memory the system clears each page. It keeps as many
/// pieces as were in use at once.
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
    if (free.empty()) {
      bytes_ += count * sizeof(float);
      return {std::make_unique_for_overwrite<float[]>(count).release(), {this, count}};
    }
    Piece piece(free.back().release(), {this, count});
    free.pop_back();
    return piece;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  ///< of all pieces

 private:
  void give_back(float* elements, std::size_t count) noexcept {
    std::unique_ptr<float[]> piece(elements);
    try {
      free_[count].push_back(std::move(piece));
    } catch (...) {  // no memory to keep it
    }
  }

  std::map<std::size_t, std::vector<std::unique_ptr<float[]>>> free_;  ///< by elements
  std::size_t bytes_ = 0;
};

/// Values as a server sends them while it changes them: one copy for all answers with a version.
class PublishedValues {
 public:
  /// @param pool  outlives all copies
  explicit PublishedValues(GradientPool& pool) : pool_(pool) {}
  /// Call after changing the values.
  void expire() noexcept { copy_.reset(); }
  [[nodiscard]] std::shared_ptr<const float[]> copy_of(std::span<const float> values, int threads = 1) {
    if (copy_ == nullptr) {
      GradientPool::Piece copy = pool_.take(values.size());
      parallel_for(threads, values.size(),
                   [&](Range part) { std::copy_n(values.data() + part.begin, part.size(), copy.get() + part.begin); });
      copy_ = std::move(copy);
    }
    return copy_;
  }

 private:
  GradientPool& pool_;
  std::shared_ptr<const float[]> copy_;
};

}  // namespace ronda
