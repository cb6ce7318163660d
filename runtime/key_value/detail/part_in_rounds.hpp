#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ronda/runtime/key_value/detail/served_part.hpp>

namespace ronda {

/// Round r makes version r + 1 of version r, by the mean of K workers' gradients. A push counts towards the round of
/// the version that the worker has pulled, or the one after its last push: a worker may push ahead, up to a bound
/// (PushesAhead), and its gradient waits for its round here. A gradient for a round that is over is dropped.
class PartInRounds final : public ServedPart {
 public:
  PartInRounds(ServedTogether& together, const KeyPart& part, std::span<const float> values);

  void push(PushedGradient gradient) override;
  void pull(const Asked& asked) override;
  void worker_closed() override { require_possible(); }
  [[nodiscard]] std::vector<Asked> take_waiting() override;
  [[nodiscard]] Message why_waiting() const override;

 private:
  using Gradients = std::vector<PushedGradient>;
  [[nodiscard]] bool end_round();
  [[nodiscard]] const float* mean_of(Gradients& gradients) const;
  void begin_round();
  void answer_pulls();
  [[nodiscard]] std::size_t bytes() const noexcept { return part().count * sizeof(float); }
  void require_possible() const;

  std::size_t wanted_;                         ///< gradients in a round
  std::map<std::uint64_t, Gradients> rounds_;  ///< in order of arrival; from `version` on
  std::vector<std::uint64_t> next_round_;      ///< by worker: the earliest that its next push can count towards
  std::vector<Asked> waiting_pulls_;
};

}  // namespace ronda
