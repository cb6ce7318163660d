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

/// Who may touch the tensors that are in flight, and end what waits for them: the coordinator's thread, except while it
/// waits for other ranks. In that time another thread may give everything up; the coordinator's then touches nothing
/// any more, however long it stands in a call, and whoever submitted the tensors may free them.
///
/// One for a coordinator with all groups inside.
class Custody {
 public:
  using Hold = std::unique_lock<std::mutex>;
  /// For the coordinator's thread, from its first cycle to its last.
  [[nodiscard]] Hold take() { return Hold(door_); }

  /// For the coordinator's thread while it has custody: runs `wait` without. Throws why all was given up, where it was.
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
    if (reason_) std::rethrow_exception(reason_);
    if (error) std::rethrow_exception(error);
  }

  /// For any other thread: runs `end`, which ends all that is in flight, once the coordinator's thread waits.
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

/// A link whose waits leave custody to others.
class LinkWithoutCustody final : public CoordinatorLink {
 public:
  LinkWithoutCustody(std::unique_ptr<CoordinatorLink> link, std::shared_ptr<Custody> custody)
      : link_(std::move(link)), custody_(std::move(custody)) {}

  [[nodiscard]] int rank() const noexcept override { return link_->rank(); }
  [[nodiscard]] int size() const noexcept override { return link_->size(); }
  [[nodiscard]] std::string name_of_rank(int rank) const override { return link_->name_of_rank(rank); }
  void intersect(std::span<std::uint64_t> words, bool eager) override {
    custody_->without([&] { link_->intersect(words, eager); });
  }
  void merge(std::span<std::byte> block) override {
    custody_->without([&] { link_->merge(block); });
  }
  [[nodiscard]] std::span<std::byte> stage(int index) override { return link_->stage(index); }
  void start(int stage, ReduceOp op, DType dtype, std::size_t bytes) override {
    custody_->without([&] { link_->start(stage, op, dtype, bytes); });
  }
  void finish(int stage) override {
    custody_->without([&] { link_->finish(stage); });
  }
  [[nodiscard]] std::vector<std::string> take_notes() override { return link_->take_notes(); }
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
