#include <cstdio>

#include <ronda/core/device_context.hpp>

#include "support/ranks.hpp"

/// Tests that need a GPU; 77, which ctest counts as skipped, where there is none.
int main(int argc, char** argv) {
  const ronda::GpuSurvey survey = ronda::find_gpus();
  if (!survey.reason.empty()) {
    std::printf("skipped: %s\n", survey.reason.c_str());
    return 77;
  }
  return ronda::test::run_tests(argc, argv);
}
