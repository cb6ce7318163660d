#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>
#include <ronda/layers/onednn/computation.hpp>
#include <ronda/layers/onednn/memory_desc.hpp>

#include <algorithm>
#include <array>

namespace ronda::onednn {

Kernel::Kernel(const Runtime& runtime, const dnnl::primitive& primitive, std::span<const Argument> arguments)
    : stream_(runtime.stream), primitive_(primitive), addresses_(arguments.size(), nullptr) {
  for (const Argument& argument : arguments) {
    memories_.push_back(dnnl::memory(argument.desc, runtime.engine, DNNL_MEMORY_NONE));
    arguments_.push_back({argument.name, memories_.back().get()});
  }
}

void Kernel::run(std::span<void* const> data) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i] == addresses_[i]) continue;
    dnnl_memory_set_data_handle(arguments_[i].memory, data[i]);
    addresses_[i] = data[i];
  }
  const auto status =
      dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
  if (status != dnnl_success) throw Error("oneDNN failed to run a primitive: status " + std::to_string(status));
}

Kernel make_reorder(const Runtime& runtime, const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  const dnnl::reorder::primitive_desc description(runtime.engine, from, runtime.engine, to);
  return {runtime, dnnl::reorder(description),
          std::array{Kernel::Argument{DNNL_ARG_FROM, from}, Kernel::Argument{DNNL_ARG_TO, to}}};
}

Kernel make_weight_reorder(const Runtime& runtime, const TensorDesc& from, const TensorDesc& to) {
  return make_reorder(runtime, to_memory_desc(from, Axes::weight), to_memory_desc(to, Axes::weight));
}

dnnl::primitive_attr Computation::attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

Computation::Computation(const Runtime& runtime, const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
                         const std::vector<Argument>& inputs, const Argument& output) {
  ArenaPlan scratch;
  std::vector<Kernel::Argument> wanted;
  const auto place = [&](const Argument& argument, bool is_input) {
    wanted.push_back({argument.name, argument.wanted});
    Place result{argument.given, nullptr, 0};
    if (same_bytes(argument.given, argument.wanted)) return result;
    result.reorder = std::make_unique<Kernel>(is_input ? make_reorder(runtime, argument.given, argument.wanted)
                                                       : make_reorder(runtime, argument.wanted, argument.given));
    result.offset = scratch.reserve(argument.wanted.get_size());
    return result;
  };
  if (inputs.size() > max_inputs) throw LogicError("a computation with too many inputs");
  for (const Argument& input : inputs) inputs_.push_back(place(input, true));
  output_ = place(output, false);
  scratchpad_offset_ = scratch.reserve(scratchpad.get_size());
  wanted.push_back({DNNL_ARG_SCRATCHPAD, scratchpad});
  scratch_bytes_ = scratch.bytes();
  kernel_ = std::make_unique<Kernel>(runtime, primitive, wanted);
}

void Computation::execute(std::span<const void* const> inputs, void* output, std::byte* scratch) {
  std::array<void*, max_inputs + 2> data{};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    data[i] = const_cast<void*>(inputs[i]);  // the library takes no pointers to const
    if (!inputs_[i].reorder) continue;
    void* reordered = scratch + inputs_[i].offset;
    inputs_[i].reorder->run(std::array{data[i], reordered});
    data[i] = reordered;
  }
  void*& result = data[inputs.size()];
  result = output_.reorder ? scratch + output_.offset : output;
  data[inputs.size() + 1] = scratch + scratchpad_offset_;
  kernel_->run(std::span(data).first(inputs.size() + 2));
  if (output_.reorder) output_.reorder->run(std::array{result, output});
}

void Computation::rehearse(std::byte* memory) {
  ArenaPlan arena;
  std::byte* output = memory + arena.reserve(output_.given.get_size());
  std::array<const void*, max_inputs> inputs{};
  for (std::size_t i = 0; i < inputs_.size(); ++i) inputs[i] = memory + arena.reserve(inputs_[i].given.get_size());
  execute(std::span(inputs).first(inputs_.size()), output, memory + arena.bytes());
}

std::size_t Computation::rehearsal_bytes() const {
  ArenaPlan arena;
  arena.reserve(output_.given.get_size());
  for (const Place& input : inputs_) arena.reserve(input.given.get_size());
  return arena.bytes() + scratch_bytes_;
}

bool is_fallback(const std::string& implementation) {
  return implementation.find("ref") != std::string::npos || implementation.starts_with("gemm:") ||
         implementation.find(":gemm:") != std::string::npos;
}

Option pick(Picker& picker, const std::string& question, std::vector<Option> options, std::span<const Candidate> ours,
            const std::function<void()>& before) {
  std::size_t bytes = 0;
  for (const Option& option : options)
    if (option.computation) bytes = std::max(bytes, option.computation->rehearsal_bytes());
  Buffer memory;  // taken when the first is timed: most days the answer is known
  std::vector<Candidate> candidates;
  for (const Option& option : options) {
    Candidate candidate{option.name, nullptr, option.counts};
    if (Computation* computation = option.computation.get())
      candidate.run = [computation, bytes, times = option.times, &memory, &before] {
        if (memory.bytes() == 0) memory = Buffer::host(bytes);
        if (before) before();
        for (std::size_t i = 0; i < times; ++i) computation->rehearse(memory.data());
      };
    candidates.push_back(std::move(candidate));
  }
  for (const Candidate& candidate : ours) {
    candidates.push_back(candidate);
    options.push_back({candidate.name, nullptr});
  }
  return std::move(options[picker.pick(question, candidates)]);
}

}  // namespace ronda::onednn
