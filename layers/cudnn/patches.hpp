#pragma once
#include <memory>

#include <ronda/layers/cudnn/graph.hpp>

namespace ronda::cudnn {

/// A convolution by patches and a product of cuBLASLt's, of float32, so many images at a time that their patches stay
/// within a part of the workspace: for kinds without a bias, and one group. Deterministic if the rules say so. Engines
/// are the product's.
std::unique_ptr<Graph> make_patch_graph(const ConvolutionProblem& spec, ConvolutionGraph kind,
                                        const EngineRules& rules);

}  // namespace ronda::cudnn
