#include <ronda/core/denormals.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>

#include <omp.h>

namespace ronda {

FlushDenormals::FlushDenormals(int threads)
    : team_(threads > 1 && !DenormalScope::flushes() ? threads : 0), own_(true) {
  if (team_ == 0) return;
  int granted = 0;
#pragma omp parallel num_threads(team_)
  {
    DenormalScope::set(DenormalScope::bits);
#pragma omp master
    granted = omp_get_num_threads();
  }
  if (granted < team_)
    throw LogicError("this computation is planned for " + counted(team_, "thread") + ", and OpenMP grants " +
                     std::to_string(granted) +
                     ": plan and run it on one thread of the program, outside OpenMP's parallel regions");
}

FlushDenormals::~FlushDenormals() {
  if (team_ == 0) return;
#pragma omp parallel num_threads(team_)
  DenormalScope::set(own_.before_);
}

}  // namespace ronda
