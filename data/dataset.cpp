#include <ronda/core/hash.hpp>
#include <ronda/data/dataset.hpp>

namespace ronda {

RngKey SampleRequest::key(std::size_t row, std::string_view stream) const {
  return {seed, Purpose::augmentation, Hash().add(epoch).add(samples[row]).add(stream).value()};
}

}  // namespace ronda
