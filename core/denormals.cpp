#include <ronda/core/denormals.hpp>

#include <omp.h>

namespace ronda {

FlushDenormals::FlushDenormals(int threads) noexcept
    : team_(threads > 1 && !DenormalScope::flushes() ? threads : 0), own_(true) {
  if (team_ == 0) return;
#pragma omp parallel num_threads(team_)
  DenormalScope::set(DenormalScope::bits);
}

FlushDenormals::~FlushDenormals() {
  if (team_ == 0) return;
#pragma omp parallel num_threads(team_)
  DenormalScope::set(own_.before_);
}

}  // namespace ronda
