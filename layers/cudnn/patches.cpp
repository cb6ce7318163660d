#include <ronda/core/cuda/stream.hpp>
#include <ronda/core/error.hpp>
#include <ronda/layers/cudnn/kernels.hpp>
#include <ronda/layers/cudnn/library.hpp>
#include <ronda/layers/cudnn/matmul.hpp>
#include <ronda/layers/cudnn/patches.hpp>

#include <algorithm>
#include <optional>

namespace ronda::cudnn {
namespace {

constexpr std::int64_t images_a_step = 16;  ///< so that every part begins at an aligned address

/// How many images have their patches in memory at a time; 0: not even one has.
std::int64_t images_at_a_time(const ConvolutionProblem& spec, const PatchGeometry& geometry, std::size_t patch_bytes) {
  const std::int64_t geometry_an_image =
      std::max({geometry.rows_an_image() * geometry.runs_a_patch(), geometry.runs_an_image(), std::int64_t{1}});
  const std::int64_t images = static_cast<std::int64_t>(patch_bytes / sizeof(float)) / geometry_an_image;
  return images >= spec.input.shape[0] ? spec.input.shape[0] : images / images_a_step * images_a_step;
}

class PatchConvolution final : public Graph {
 public:
  PatchConvolution(const ConvolutionProblem& spec, ConvolutionGraph kind, const EngineRules& rules,
                   std::size_t patch_bytes)
      : kind_(kind), rules_(rules), outputs_(spec.outputs), images_(spec.input.shape[0]), geometry_(spec) {
    if (kind == ConvolutionGraph::forward_bias || spec.groups != 1 ||
        dtype_of_layers(rules.precision) != DType::float32)
      throw LogicError("a convolution by patches has one group, no bias, and float32");
    at_a_time_ = images_at_a_time(spec, geometry_, patch_bytes);
    if (at_a_time_ == 0) {
      why_none_ = images_ == 0 ? "there are no images"
                               : "the patches of " + std::to_string(images_a_step) + " images take more than " +
                                     std::to_string(patch_bytes) + " bytes";
      return;
    }
    whole_.emplace(product_of(at_a_time_));
    if (images_ % at_a_time_ != 0) rest_.emplace(product_of(images_ % at_a_time_));
  }

  void find_engines(const Library& library, std::string_view known) override {
    engines_.clear();
    if (!whole_) return;
    why_none_ = "cuBLASLt suggests no product that fits the workspace";
    whole_->find_algorithms(library.cublas());
    if (rest_) rest_->find_algorithms(library.cublas());
    if (rest_ && rest_->algorithms() == 0) return;
    for (std::size_t i = 0; i < whole_->algorithms(); ++i) {
      const std::size_t bytes = std::max(whole_->workspace_bytes(i), rest_ ? rest_->workspace_bytes(of_rest(i)) : 0);
      if (patch_bytes() + bytes <= workspace_limit) engines_.push_back({std::to_string(i), patch_bytes() + bytes});
    }
    const auto wanted = std::ranges::find(engines_, known, &Engine::name);
    if (wanted != engines_.end()) engines_ = {Engine(*wanted)};
    if (!engines_.empty()) why_none_.clear();
  }

  [[nodiscard]] std::span<const Engine> engines() const noexcept override { return engines_; }
  [[nodiscard]] const std::string& why_none() const noexcept override { return why_none_; }

  void run(const Library& library, Stream& stream, std::span<void*> pointers, std::byte* workspace,
           std::size_t engine) override {
    const auto algorithm = static_cast<std::size_t>(std::stoul(engines_[engine].name));
    for (std::int64_t first = 0; first < images_; first += at_a_time_) {
      const std::int64_t images = std::min(at_a_time_, images_ - first);
      const bool whole = images == at_a_time_;
      run_part({library, stream, workspace, whole ? *whole_ : *rest_, whole ? algorithm : of_rest(algorithm)}, pointers,
               first, images);
    }
  }

 private:
  struct With {
    const Library& library;
    Stream& stream;
    std::byte* workspace;
    Matmul& product;
    std::size_t algorithm;
  };

  [[nodiscard]] std::size_t patch_bytes() const {
    return aligned_bytes(static_cast<std::size_t>(at_a_time_ * geometry_.rows_an_image() * geometry_.runs_a_patch()) *
                         sizeof(float));
  }
  /// The best but so many, where the smaller product has fewer.
  [[nodiscard]] std::size_t of_rest(std::size_t algorithm) const {
    return std::min(algorithm, rest_->algorithms() - 1);
  }

  [[nodiscard]] Matmul product_of(std::int64_t images) const {
    const std::int64_t rows = images * geometry_.rows_an_image(), patch = geometry_.runs_a_patch();
    const Matrix patches{rows, patch}, weights{outputs_, patch}, outputs{rows, outputs_};
    switch (kind_) {
      case ConvolutionGraph::weight_gradient: return {{outputs, true}, {patches, false}, Epilogue::none, rules_};
      case ConvolutionGraph::data_gradient: return {{outputs, false}, {weights, false}, Epilogue::none, rules_};
      default: return {{patches, false}, {weights, true}, Epilogue::none, rules_};
    }
  }

  void run_part(const With& with, std::span<void*> pointers, std::int64_t first, std::int64_t images) {
    auto* const patches = reinterpret_cast<float*>(with.workspace);
    const auto image = [&](void* x) { return static_cast<float*>(x) + first * geometry_.runs_an_image(); };
    const auto output = [&](void* y) { return static_cast<float*>(y) + first * geometry_.rows_an_image() * outputs_; };
    switch (kind_) {
      case ConvolutionGraph::weight_gradient:
        gather_patches(with.stream, geometry_, images, image(pointers[1]), patches);
        return multiply(with, {output(pointers[0]), patches, pointers[2], nullptr, first > 0});
      case ConvolutionGraph::data_gradient:
        multiply(with, {output(pointers[0]), pointers[1], patches, nullptr});
        return sum_patches(with.stream, geometry_, images, patches, image(pointers[2]));
      default:
        gather_patches(with.stream, geometry_, images, image(pointers[0]), patches);
        return multiply(with, {patches, pointers[1], output(pointers[2]), nullptr});
    }
  }

  void multiply(const With& with, const Matmul::Operands& operands) const {
    with.product.run(with.library.cublas(), cuda::handle_of(with.stream), operands, with.workspace + patch_bytes(),
                     with.algorithm);
  }

  ConvolutionGraph kind_;
  EngineRules rules_;
  std::int64_t outputs_, images_, at_a_time_ = 0;
  PatchGeometry geometry_;
  std::optional<Matmul> whole_, rest_;  ///< of as many images as fit, and of those left over
  std::vector<Engine> engines_;
  std::string why_none_;
};

}  // namespace

std::unique_ptr<Graph> make_patch_graph(const ConvolutionProblem& spec, ConvolutionGraph kind, const EngineRules& rules,
                                        std::size_t patch_bytes) {
  return std::make_unique<PatchConvolution>(spec, kind, rules, patch_bytes);
}

}  // namespace ronda::cudnn
