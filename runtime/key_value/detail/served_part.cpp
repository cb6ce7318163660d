#include <ronda/runtime/key_value/detail/asynchronous_part.hpp>
#include <ronda/runtime/key_value/detail/part_in_rounds.hpp>
#include <ronda/runtime/key_value/detail/served_part.hpp>

#include <algorithm>

namespace ronda {
namespace {

std::span<float> elements_in(const Buffer& buffer, std::size_t count) {
  return {reinterpret_cast<float*>(buffer.data()), count};
}

}  // namespace

ServedPart::ServedPart(ServedTogether& together, const KeyPart& part, std::span<const float> values)
    : together_(together), part_(part), values_(Buffer::host(Buffer::aligned(values.size_bytes()))) {
  const auto own = elements_in(values_, part_.count);
  std::ranges::copy(values, own.begin());
  update_ = together_.make_update(part_, own);
}

void ServedPart::update(const float* gradient) {
  published_is_new_ = false;
  update_->apply(version_, {gradient, part_.count});
  ++version_;
  ++together_.statistics.updates;
}

void ServedPart::answer_each(std::vector<Asked>& pulls, FunctionRef<bool(const Asked& pull)> may_have) {
  for (auto pull = pulls.begin(); pull != pulls.end();) {
    if (!may_have(*pull)) {
      ++pull;
      continue;
    }
    answer(*pull);
    pull = pulls.erase(pull);
  }
}

/// The next update may come while the values are on their way: so a copy is sent, one for all pulls of a version.
void ServedPart::answer(const Asked& pull) {
  if (!published_is_new_) {
    if (published_ == nullptr || published_.use_count() > 1)
      published_ = std::make_shared_for_overwrite<float[]>(part_.count);
    std::ranges::copy(elements_in(values_, part_.count), published_.get());
    published_is_new_ = true;
  }
  together_.answers.values(pull, {published_, part_.count, version_});
}

std::unique_ptr<ServedPart> make_served_part(ServedTogether& together, const KeyPart& part,
                                             std::span<const float> values) {
  if (together.options.asynchronous) return std::make_unique<AsynchronousPart>(together, part, values);
  return std::make_unique<PartInRounds>(together, part, values);
}

}  // namespace ronda
