#pragma once
#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace ronda {

template <class Signature>
class FunctionRef;

/// A reference to a function, for parameters: valid until the call that takes it returns. Owns nothing, allocates
/// nothing.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Function>
  requires(!std::same_as<std::remove_cvref_t<Function>, FunctionRef>)
      FunctionRef(const Function& function)  // NOLINT(google-explicit-constructor): to pass a lambda directly
      : function_(std::addressof(function)), call_([](const void* f, Arguments... arguments) -> Result {
          return (*static_cast<const Function*>(f))(std::forward<Arguments>(arguments)...);
        }) {}
  Result operator()(Arguments... arguments) const { return call_(function_, std::forward<Arguments>(arguments)...); }

 private:
  const void* function_;
  Result (*call_)(const void*, Arguments...);
};

}  // namespace ronda
