#pragma once
#include <cstddef>
#include <memory>

#include <ronda/layers/cudnn/graph.hpp>

namespace ronda::cudnn {

/// A convolution by patches and a product of cuBLASLt's, of float32, so many images at a time that their patches take
/// at most `patch_bytes` of the workspace: for kinds without a bias, and one group. Deterministic if the rules say so.
/// Engines are the product's. Throws LogicError for other kinds, groups and types.
std::unique_ptr<Graph> make_patch_graph(const ConvolutionProblem& spec, ConvolutionGraph kind, const EngineRules& rules,
                                        std::size_t patch_bytes = std::size_t{48} << 20);

}  // namespace ronda::cudnn
