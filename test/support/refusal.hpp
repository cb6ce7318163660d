#pragma once
#include <string>
#include <utility>

#include <ronda/core/error.hpp>

namespace ronda::test {

/// What `work` was refused with; empty where it was not.
template <class Work>
std::string refusal(Work&& work) {
  try {
    std::forward<Work>(work)();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace ronda::test
