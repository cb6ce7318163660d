#pragma once
#include <cstdint>
#include <vector>

#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/update/kernels.hpp>

namespace ronda::update_kernels {

/// The factors of each group.
[[nodiscard]] std::vector<Group> groups_of(const Optimizer& optimizer, const OptimizerBindings& bindings);

/// The group of each line of 16 elements of an arena of `count` elements. Throws LogicError for segments that are not
/// aligned, overlap or do not fit.
[[nodiscard]] std::vector<std::uint16_t> groups_of_lines(const OptimizerBindings& bindings, std::size_t count);

}  // namespace ronda::update_kernels
