#pragma once
#include <string>
#include <string_view>

#include <ronda/optim/optimizer.hpp>

namespace ronda {

// Refusals that several strategies share. Each throws InputError, with the remedy.

/// For a strategy that sums whole gradients.
/// @param parameter  its gradient is sparse
[[noreturn]] void refuse_sparse_gradient(const std::string& parameter, std::string_view strategy);
/// For a strategy whose ranks have parts of parameters.
/// @param why  a clause: `a rank has parts of them`
[[noreturn]] void refuse_update_of_whole(const Optimizer& optimizer, std::string_view strategy, std::string_view why);
/// For ranks that take the same micro-batches.
/// @param who  `all stages of a pipeline`
[[noreturn]] void refuse_other_micro_batches(const std::string& who);

}  // namespace ronda
