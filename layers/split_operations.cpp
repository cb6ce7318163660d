#include <ronda/core/error.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/layers/split_operations.hpp>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace ronda {
namespace {

class SummedOperation final : public Operation {
 public:
  SummedOperation(std::unique_ptr<Operation> part, SumOverRanks sums, const TensorDesc& input)
      : part_(std::move(part)), sums_(sums) {
    plan_ = part_->plan();
    plan_.in_halves = false;
    plan_.parts.summed = sums == SumOverRanks::output ? plan_.output : input;
    plan_.parts.sums = static_cast<std::size_t>(plan_.parts.summed.padded_count());
    plan_.picks += sums == SumOverRanks::output ? ", summed over the parts" : ", its input's gradient summed";
  }

  void bind(const OperationMemory& memory) override {
    part_->bind(memory);
    if (sums_ == SumOverRanks::output)
      summed_ = memory.output;
    else if (!memory.input_gradients.empty())
      summed_ = memory.input_gradient();
  }
  void forward(Inputs inputs, const Pass& pass) override {
    part_->forward(inputs, pass);
    if (sums_ == SumOverRanks::output) add_up(pass);
  }
  /// The sum waits for nothing but the other ranks: parameters' gradients were reported before.
  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    part_->backward(inputs, output_gradient, pass);
    if (sums_ == SumOverRanks::input_gradient) add_up(pass);
  }

 private:
  void add_up(const Pass& pass) const {
    if (pass.parts != nullptr && !summed_.empty()) pass.parts->add_up(summed_.as<float>());
  }

  std::unique_ptr<Operation> part_;
  SumOverRanks sums_;
  Tensor summed_;
};

/// One direction of a PartSpec is the other's backward.
class PartOperation final : public Operation {
 public:
  PartOperation(const PartSpec& spec, const TensorDesc& input) : gathers_(spec.gathers), part_(spec.part) {
    std::ranges::transform(spec.widths, std::back_inserter(widths_),
                           [](std::int64_t width) { return static_cast<std::size_t>(width); });
    first_ = std::accumulate(widths_.begin(), widths_.begin() + static_cast<std::ptrdiff_t>(part_), std::size_t{0});
    whole_ = std::accumulate(widths_.begin(), widths_.end(), std::size_t{0});
    const OperationSpec described = spec;
    plan_.output = {output_shape(described, {&input.shape, 1}), DType::float32, {}};
    plan_.picks = "rows of the parts";
    plan_.backward_reads_inputs = plan_.backward_reads_output = false;
    rows_ = static_cast<std::size_t>(input.count()) / (gathers_ ? widths_[part_] : whole_);
    plan_.parts = {.rows = rows_, .widths = widths_};
  }

  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass& pass) override { run(inputs.front(), memory_.output, gathers_, pass); }
  void backward(Inputs, const Tensor& output_gradient, const Pass& pass) override {
    if (memory_.input_gradient().empty()) return;
    run(output_gradient, memory_.input_gradient(), !gathers_, pass);
  }

 private:
  void run(const Tensor& from, const Tensor& to, bool gathers, const Pass& pass) const {
    const std::span<const float> given = from.as<const float>();
    const std::span<float> made = to.as<float>();
    if (!gathers)
      copy_rows(given.data() + first_, whole_, made.data(), widths_[part_]);
    else if (pass.parts != nullptr)
      pass.parts->gather(given, made, widths_);
    else  // for costs, by a rank alone
      copy_rows(given.data(), widths_[part_], made.data() + first_, whole_);
  }
  void copy_rows(const float* from, std::size_t from_stride, float* to, std::size_t to_stride) const {
    for (std::size_t row = 0; row < rows_; ++row)
      std::copy_n(from + row * from_stride, widths_[part_], to + row * to_stride);
  }

  bool gathers_;
  std::size_t part_;
  std::vector<std::size_t> widths_;
  std::size_t first_ = 0, whole_ = 0, rows_ = 0;
  OperationMemory memory_;
};

}  // namespace

SumOverRanks sums_of(const OperationSpec& operation) {
  return std::visit(
      Overloaded{[](const DenseSpec& spec) { return spec.sums; }, [](const ConvolutionSpec& spec) { return spec.sums; },
                 [](const auto&) { return SumOverRanks::none; }},
      operation);
}

std::unique_ptr<Operation> summed_over_ranks(std::unique_ptr<Operation> part, SumOverRanks sums,
                                             const TensorDesc& input, bool input_gradient) {
  if (sums == SumOverRanks::none || (sums == SumOverRanks::input_gradient && !input_gradient)) return part;
  if (part->plan().output.dtype != DType::float32)
    throw InputError("operations are split over ranks in float32 alone, not in " +
                     std::string(name_of(part->plan().output.dtype)));
  return std::make_unique<SummedOperation>(std::move(part), sums, input);
}

std::unique_ptr<Operation> make_part(const PartSpec& spec, const TensorDesc& input) {
  if (input.dtype != DType::float32 || !same_bytes(input, {input.shape, DType::float32, {}}))
    throw LogicError("a part of features cannot be taken of " + input.text());
  return std::make_unique<PartOperation>(spec, input);
}

}  // namespace ronda
