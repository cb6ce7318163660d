#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/layers/dropout.hpp>

#include <string>

namespace ronda {

Dropout::Dropout(double p) : spec_{.p = p} {
  if (!(p >= 0 && p <= 1)) throw InputError("a dropout drops with a probability from 0 to 1, not " + shortest(p));
}

}  // namespace ronda
