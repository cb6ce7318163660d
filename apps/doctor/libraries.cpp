// No header of NVIDIA's: the doctor tells what a machine has also where the program was built without. What is called
// here has been the same in all versions of these libraries.
#include "libraries.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>

#include <ronda/core/device_context.hpp>

namespace ronda::apps {
namespace {

struct Close {
  void operator()(void* library) const noexcept { ::dlclose(library); }
};
using Handle = std::unique_ptr<void, Close>;

template <class Function>
Function* function_of(const Handle& library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library.get(), name));
}

std::string dotted(std::size_t code, std::size_t major, std::size_t minor) {
  return std::to_string(code / major) + "." + std::to_string(code % major / minor) + "." + std::to_string(code % minor);
}

/// The first of `names` that is there; `ask` gives its version, empty where it does not answer.
OptionalLibrary find(std::initializer_list<const char*> names, const std::function<std::string(const Handle&)>& ask) {
  OptionalLibrary found;
  for (const char* name : names) {
    const Handle library(::dlopen(name, RTLD_LAZY | RTLD_LOCAL));
    if (library == nullptr) {
      if (found.problem.empty()) found.problem = ::dlerror();
      continue;
    }
    found.version = ask(library);
    found.problem = found.version.empty() ? std::string(name) + " is there, and does not say its version" : "";
    break;
  }
  return found;
}

}  // namespace

OptionalLibrary find_driver() {
  return find({"libcuda.so.1"}, [](const Handle& library) -> std::string {
    int version = 0;
    auto* ask = function_of<int(int*)>(library, "cuDriverGetVersion");
    if (ask == nullptr || ask(&version) != 0) return {};
    return cuda_version_text(version);
  });
}

OptionalLibrary find_nccl() {
  return find({"libnccl.so.2"}, [](const Handle& library) -> std::string {
    int version = 0;
    auto* ask = function_of<int(int*)>(library, "ncclGetVersion");
    return ask == nullptr || ask(&version) != 0 ? "" : dotted(static_cast<std::size_t>(version), 10000, 100);
  });
}

OptionalLibrary find_cudnn() {
  return find({"libcudnn.so.9"}, [](const Handle& library) -> std::string {
    auto* ask = function_of<std::size_t()>(library, "cudnnGetVersion");
    return ask == nullptr ? "" : dotted(ask(), 10000, 100);
  });
}

OptionalLibrary find_cublaslt() {
  return find({"libcublasLt.so.13", "libcublasLt.so.12"}, [](const Handle& library) -> std::string {
    auto* ask = function_of<std::size_t()>(library, "cublasLtGetVersion");
    return ask == nullptr ? "" : dotted(ask(), 10000, 100);
  });
}

}  // namespace ronda::apps
