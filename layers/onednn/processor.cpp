#include <ronda/layers/onednn/processor.hpp>

#include <dnnl.hpp>

namespace ronda::onednn {

#if defined(__x86_64__)
namespace {

bool may_use(dnnl::cpu_isa instructions) {
  const auto needed = static_cast<unsigned>(instructions);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed &&
         __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("popcnt") != 0;
}

}  // namespace

bool has_avx512() noexcept {
  static const bool has = may_use(dnnl::cpu_isa::avx512_core);
  return has;
}

bool has_avx2() noexcept {
  static const bool has = may_use(dnnl::cpu_isa::avx2) && __builtin_cpu_supports("fma") != 0;
  return has;
}
#else
bool has_avx512() noexcept { return false; }
bool has_avx2() noexcept { return false; }
#endif

}  // namespace ronda::onednn
