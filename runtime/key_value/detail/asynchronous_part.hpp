#pragma once
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include <ronda/runtime/key_value/detail/served_part.hpp>

namespace ronda {

/// Applies each gradient as it comes; holds back workers that are too far ahead of the slowest.
class AsynchronousPart final : public ServedPart {
 public:
  AsynchronousPart(ServedTogether& together, const KeyPart& part, std::span<const float> values);

  void push(PushedGradient gradient) override;
  void pull(const Asked& asked) override;
  void worker_closed() override { release(); }
  [[nodiscard]] std::vector<Asked> take_waiting() override;
  [[nodiscard]] Message why_waiting() const override;

  /// Ages of gradients that are counted by themselves.
  static constexpr std::size_t counted_ages = 1024;

 private:
  [[nodiscard]] std::size_t slowest(int worker) const;
  [[nodiscard]] bool is_ahead(int worker) const;
  void apply(const PushedGradient& gradient);
  void release();
  [[nodiscard]] bool release_one();

  std::vector<std::uint64_t> pushes_;  ///< by worker: that were applied
  std::list<PushedGradient> held_;     ///< that are not answered, in order of arrival
  std::vector<Asked> held_pulls_;      ///< likewise
};

}  // namespace ronda
