#pragma once
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ronda/coordinator/detail/link.hpp>

namespace ronda {

/// The right to touch the tensors that are in flight, and to end what waits for them. The coordinator has it within a
/// step, except while it waits for other ranks there. At any other time another thread may give everything up; the
/// coordinator then touches nothing any more, however long it stands in a call, and the tensors may be freed.
///
/// One for a coordinator with all groups inside.
class Custody {
 public:
  using Hold = std::unique_lock<std::mutex>;
  /// For a step of the coordinator.
  [[nodiscard]] Hold take() { return Hold(door_); }
  /// With custody: throws why all was given up, if it was.
  void require_kept() const {
    if (reason_) std::rethrow_exception(reason_);
  }

  /// With custody: runs `wait` without it. Throws why all was given up, if it was.
  template <class Wait>
  void without(Wait&& wait) {
    door_.unlock();
    std::exception_ptr error;
    try {
      wait();
    } catch (...) {
      error = std::current_exception();
    }
    door_.lock();
    require_kept();
    if (error) std::rethrow_exception(error);
  }

  /// For any other thread: runs `end`, which ends all that is in flight, once the coordinator has no custody.
  template <class End>
  void give_up(std::exception_ptr reason, End&& end) {
    const std::lock_guard hold(door_);
    reason_ = std::move(reason);
    end();
  }

 private:
  std::mutex door_;
  std::exception_ptr reason_;
};

/// A link whose calls that wait leave custody to others.
class LinkWithoutCustody final : public CoordinatorLink {
 public:
  LinkWithoutCustody(std::unique_ptr<CoordinatorLink> link, std::shared_ptr<Custody> custody)
      : link_(std::move(link)), custody_(std::move(custody)) {}

  [[nodiscard]] int rank() const noexcept override { return link_->rank(); }
  [[nodiscard]] int size() const noexcept override { return link_->size(); }
  [[nodiscard]] std::string name_of_rank(int rank) const override { return link_->name_of_rank(rank); }
  [[nodiscard]] const Clock& clock() const noexcept override { return link_->clock(); }
  [[nodiscard]] LinkOperation& intersect(std::span<std::uint64_t> words, bool eager) override {
    return link_->intersect(words, eager);
  }
  [[nodiscard]] LinkOperation& merge(std::span<std::byte> block) override { return link_->merge(block); }
  [[nodiscard]] std::span<std::byte> stage(int index) override { return link_->stage(index); }
  void start(int stage, ReduceOp op, DType dtype, std::size_t bytes) override {
    custody_->without([&] { link_->start(stage, op, dtype, bytes); });
  }
  [[nodiscard]] LinkOperation& reduction(int stage) override { return link_->reduction(stage); }
  [[nodiscard]] std::vector<Message> take_notes() override { return link_->take_notes(); }
  std::unique_ptr<CoordinatorLink> split(int color, int key) override {
    std::unique_ptr<CoordinatorLink> part;
    custody_->without([&] { part = link_->split(color, key); });
    return part;
  }

 private:
  std::unique_ptr<CoordinatorLink> link_;
  std::shared_ptr<Custody> custody_;
};

}  // namespace ronda
