#include <ronda/bindings/c/guarded.hpp>

namespace ronda {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

ronda_status failed(ronda_status status, const char* text) noexcept {
  try {
    last_error() = text;
  } catch (...) {  // no memory for the text: the status alone has to do
  }
  return status;
}

}  // namespace ronda
