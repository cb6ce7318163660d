#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/members/spec_check.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <numeric>
#include <string_view>

namespace ronda {
namespace {

using Counts = std::vector<std::size_t>;

std::string text_of(const Elements& elements) {
  return std::to_string(elements.count) + " " + std::string(name_of(elements.dtype));
}

std::string text_of(const Counts& counts) {
  std::string text;
  for (const std::size_t count : counts) text += (text.empty() ? "" : ", ") + std::to_string(count);
  return text;
}

std::size_t total(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), std::size_t{0}); }

/// `counts`, or if they are left out as many for each rank as `all` has or a rank's own part tells.
Counts complete_counts(const Counts& counts, int ranks, std::size_t each, const std::string& label) {
  if (counts.empty()) return Counts(static_cast<std::size_t>(ranks), each);
  std::size_t room = static_cast<std::size_t>(Shape::most_elements);
  for (const std::size_t count : counts) {
    if (count > room) throw InputError(label + ": its counts, " + text_of(counts) + ", are more than memory can have");
    room -= count;
  }
  if (counts.size() == static_cast<std::size_t>(ranks)) return counts;
  throw LogicError(label + " has " + std::to_string(counts.size()) + " counts for " + std::to_string(ranks) + " ranks");
}

/// @param what  for the message
void require_count(const Elements& elements, std::size_t count, const std::string& label, const char* what) {
  if (elements.count == count) return;
  throw LogicError(label + ": " + what + " has " + text_of(elements) + ", its counts make " + std::to_string(count));
}

void require_type(const Elements& one, const Elements& other, const std::string& label) {
  if (one.dtype == other.dtype) return;
  throw LogicError(label + " is between " + text_of(one) + " and " + text_of(other) + "; both must be of one type");
}

/// Counts of an `all` that is shared out evenly where none are given.
Counts shares(const Counts& counts, const Tensor& tensor, int ranks, const std::string& label) {
  const Elements all = elements_of(tensor);
  Counts each = complete_counts(counts, ranks, all.count / static_cast<std::size_t>(ranks), label);
  require_count(all, total(each), label, "the whole");
  return each;
}

void require_rank(int rank, const SpecContext& context, const std::string& label) {
  if (rank < 0 || rank >= context.size)
    throw LogicError(label + " names rank " + std::to_string(rank) + " of " + std::to_string(context.size));
}

void require_other(int rank, const SpecContext& context, const std::string& label) {
  require_rank(rank, context, label);
  if (rank == context.rank)
    throw LogicError(label + " is between rank " + std::to_string(rank) + " and itself; copy instead");
}

void require_on_host(const Tensor& tensor, const std::string& label) {
  require_memory(tensor, label);
  if (tensor.device() != Device{})
    throw LogicError(label + ": on " + tensor.device().text() +
                     " there are allreduce, broadcast, allgather and reduce-scatter alone");
}

bool is_remote(const Tensor& tensor) { return tensor.device() != Device{}; }

/// All are on this rank's device, or all on the host; for what ranks compare.
std::string_view require_one_place(const std::vector<Tensor>& tensors, const SpecContext& context,
                                   const std::string& label) {
  for (const Tensor& tensor : tensors) require_memory(tensor, label);
  if (std::ranges::none_of(tensors, is_remote)) return "";
  if (!context.device)
    throw LogicError(label + ": its tensors are on a device that the communicator was not told of: use_device");
  for (const Tensor& tensor : tensors)
    if (tensor.device() != *context.device)
      throw LogicError(label + ": a tensor is on " + tensor.device().text() + ", this rank uses " +
                       context.device->text());
  return ", on a device";
}

/// Whether a spec is of tensors on a device.
struct OnDevice {
  bool operator()(const AllreduceSpec& s) const {
    return std::ranges::any_of(s.tensors, is_remote) || std::ranges::any_of(s.exact, is_remote);
  }
  bool operator()(const BroadcastSpec& s) const { return is_remote(s.tensor); }
  bool operator()(const ReduceScatterSpec& s) const { return is_remote(s.all); }
  bool operator()(const AllgatherSpec& s) const { return is_remote(s.all); }
  template <class Other>
  bool operator()(const Other& /*for the host alone*/) const {
    return false;
  }
};

struct AllTensors {
  using Tensors = std::vector<Tensor>;
  Tensors operator()(const AllreduceSpec& s) const {
    Tensors all = s.tensors;
    all.insert(all.end(), s.exact.begin(), s.exact.end());
    return all;
  }
  Tensors operator()(const AlltoallSpec& s) const { return {s.outgoing, s.incoming}; }
  Tensors operator()(const SparseAllreduceSpec& s) const { return {s.table}; }
  template <class Spec>
  Tensors operator()(const Spec& s) const {
    if constexpr (requires { s.mine; })
      return {s.mine, s.all};
    else if constexpr (requires { s.all; })
      return {s.all};
    else
      return {s.tensor};
  }
};

/// Which elements of a whole are a rank's.
Range part_of_rank(const Counts& counts, int rank) {
  const auto at = counts.begin() + rank;
  const std::size_t begin = std::accumulate(counts.begin(), at, std::size_t{0});
  return {begin, begin + *at};
}

Tensor bytes_of(const Elements& elements) {
  return {{Shape{static_cast<std::int64_t>(elements.bytes().size())}, DType::uint8, {}}, elements.data};
}

/// What one is to be written to, no other may be read from.
void require_apart(std::vector<Tensor> tensors, const std::string& label) {
  std::erase_if(tensors, [](const Tensor& tensor) { return tensor.desc().count() == 0; });
  std::ranges::sort(tensors, {}, &Tensor::data);
  for (std::size_t i = 1; i < tensors.size(); ++i)
    if (tensors[i - 1].data() + tensors[i - 1].desc().bytes() > tensors[i].data())
      throw LogicError(label + ": two of its tensors overlap");
}

/// A rank's part, of the whole that it is copied to or from: apart, or in its place there.
void require_in_place_or_apart(const Tensor& mine, const Tensor& all, const Counts& counts, int rank,
                               const std::string& label) {
  const Elements whole = elements_of(all);
  if (elements_of(mine).data != whole.part(part_of_rank(counts, rank)).data) require_apart({mine, all}, label);
}

template <class Spec>
std::string complete_at_root(Spec& spec, const SpecContext& context) {
  const bool is_root = context.rank == spec.root;
  if (!is_root) spec.all = Tensor({Shape{0}, spec.mine.dtype(), {}}, nullptr);  // whatever was given
  const Elements mine = elements_of(spec.mine), all = elements_of(spec.all);
  require_rank(spec.root, context, spec.label);
  require_on_host(spec.mine, spec.label);
  require_on_host(spec.all, spec.label);
  spec.counts = complete_counts(spec.counts, context.size, mine.count, spec.label);
  require_count(mine, spec.counts[static_cast<std::size_t>(context.rank)], spec.label, "the part");
  if (is_root) require_count(all, total(spec.counts), spec.label, "the whole");
  if (is_root) require_type(mine, all, spec.label);
  if (is_root) require_in_place_or_apart(spec.mine, spec.all, spec.counts, context.rank, spec.label);
  return text_of(spec.counts) + " " + std::string(name_of(mine.dtype)) + ", root " + std::to_string(spec.root);
}

std::string complete_pair(const Tensor& tensor, int peer, const SpecContext& context, const std::string& label) {
  require_other(peer, context, label);
  require_on_host(tensor, label);
  return {};  // it is these two ranks' alone
}

Description describe_elements(Kind kind, const std::string& label, const Tensor& tensor, int root = -1,
                              ReduceOp op = ReduceOp::sum) {
  const Elements elements = elements_of(tensor);
  return {kind, label, {}, elements.count, elements.dtype, op, root};
}

/// Devices sum integers in their own type, in which the sum of a mean may not fit.
void require_exact_mean(ReduceOp op, DType dtype, const std::string& label) {
  if (op == ReduceOp::mean && is_integer(dtype))
    throw LogicError(label + ": a mean of " + std::string(name_of(dtype)) +
                     " on a device would wrap around; give floating-point numbers, or copy to the host");
}

/// A number that was cast to an enumeration may be none of its values.
template <class Choice>
void require_known(Choice choice, const std::string& enumeration, const std::string& label) {
  if (name_of(choice) == "?")
    throw InputError(label + ": " + std::to_string(static_cast<int>(choice)) + " is no value of " + enumeration);
}

}  // namespace

void require_memory(const Tensor& tensor, const std::string& label) {
  if (tensor.data() == nullptr && tensor.desc().count() > 0)
    throw InputError(label + ": a tensor of " + tensor.desc().text() + " has no memory");
}

void require_part(const Tensor& mine, const Tensor& all, const Counts& counts, const SpecContext& context,
                  const std::string& label) {
  require_on_host(mine, label);
  require_on_host(all, label);
  require_count(elements_of(mine), counts[static_cast<std::size_t>(context.rank)], label, "the part");
  require_type(elements_of(mine), elements_of(all), label);
  require_in_place_or_apart(mine, all, counts, context.rank, label);
}

std::string complete(AllreduceSpec& spec, const SpecContext& context) {
  std::vector<Tensor> tensors = spec.tensors;
  tensors.insert(tensors.end(), spec.exact.begin(), spec.exact.end());
  const std::string_view place = require_one_place(tensors, context, spec.label);
  if (!place.empty())
    for (const Tensor& tensor : tensors) require_exact_mean(spec.op, tensor.dtype(), spec.label);
  require_known(spec.algorithm, "AllreduceAlgorithm", spec.label);
  require_known(spec.compression, "Compression", spec.label);
  for (const Tensor& tensor : tensors) require_sense(spec.op, tensor.dtype());
  require_apart(tensors, spec.label);
  std::string text = std::string(name_of(spec.op)) + " by " + std::string(name_of(spec.algorithm));
  for (const Tensor& tensor : tensors)
    text += ", " + std::to_string(tensor.desc().padded_count()) + " " + std::string(name_of(tensor.dtype()));
  if (spec.compression != Compression::none)
    text += ", " + std::to_string(spec.tensors.size()) + " of them as " + std::string(name_of(spec.compression)) +
            " by seed " + std::to_string(spec.seed);
  return text.append(place);
}

std::string complete(BroadcastSpec& spec, const SpecContext& context) {
  require_rank(spec.root, context, spec.label);
  const std::string_view place = require_one_place({spec.tensor}, context, spec.label);
  return (text_of(elements_of(spec.tensor)) + " from " + std::to_string(spec.root)).append(place);
}

std::string complete(ReduceSpec& spec, const SpecContext& context) {
  require_rank(spec.root, context, spec.label);
  require_on_host(spec.tensor, spec.label);
  require_sense(spec.op, spec.tensor.dtype());
  return std::string(name_of(spec.op)) + " of " + text_of(elements_of(spec.tensor)) + " to " +
         std::to_string(spec.root);
}

std::string complete(ReduceScatterSpec& spec, const SpecContext& context) {
  spec.counts = shares(spec.counts, spec.all, context.size, spec.label);
  require_sense(spec.op, spec.all.dtype());
  const std::string_view place = require_one_place({spec.all}, context, spec.label);
  if (!place.empty()) require_exact_mean(spec.op, spec.all.dtype(), spec.label);
  return (std::string(name_of(spec.op)) + " of " + text_of(elements_of(spec.all)) + " in parts of " +
          text_of(spec.counts))
      .append(place);
}

std::string complete(AllgatherSpec& spec, const SpecContext& context) {
  spec.counts = shares(spec.counts, spec.all, context.size, spec.label);
  const std::string_view place = require_one_place({spec.all}, context, spec.label);
  return (text_of(elements_of(spec.all)) + " in parts of " + text_of(spec.counts)).append(place);
}

std::string complete(GatherSpec& spec, const SpecContext& context) { return complete_at_root(spec, context); }
std::string complete(ScatterSpec& spec, const SpecContext& context) { return complete_at_root(spec, context); }

/// Counts are each rank's own.
std::string complete(AlltoallSpec& spec, const SpecContext& context) {
  require_on_host(spec.outgoing, spec.label);
  require_on_host(spec.incoming, spec.label);
  spec.outgoing_counts = shares(spec.outgoing_counts, spec.outgoing, context.size, spec.label);
  spec.incoming_counts = shares(spec.incoming_counts, spec.incoming, context.size, spec.label);
  require_type(elements_of(spec.outgoing), elements_of(spec.incoming), spec.label);
  const Elements out = elements_of(spec.outgoing), in = elements_of(spec.incoming);
  const Range from = part_of_rank(spec.outgoing_counts, context.rank),
              to = part_of_rank(spec.incoming_counts, context.rank);
  const bool stays = from.size() == to.size() && out.part(from).data == in.part(to).data;
  std::vector<Tensor> tensors{spec.incoming};
  for (const Range& sent :
       stays ? std::vector<Range>{{0, from.begin}, {from.end, out.count}} : std::vector<Range>{{0, out.count}})
    tensors.push_back(bytes_of(out.part(sent)));
  require_apart(tensors, spec.label);
  return std::string(name_of(spec.outgoing.dtype()));
}

std::string complete(SendSpec& spec, const SpecContext& context) {
  return complete_pair(spec.tensor, spec.to, context, spec.label);
}

std::string complete(ReceiveSpec& spec, const SpecContext& context) {
  return complete_pair(spec.tensor, spec.from, context, spec.label);
}

std::string complete(SparseAllreduceSpec& spec, const SpecContext& /*context*/) {
  const TensorDesc& table = spec.table.desc();
  require_known(spec.algorithm, "AllreduceAlgorithm", spec.label);
  require_on_host(spec.table, spec.label);
  if (table.dtype != DType::float32 || table.shape.rank() != 2 || !table.layout.is_plain())
    throw LogicError(spec.label + " is of a plain table of float32, not of " + table.text());
  if (spec.touched == nullptr || spec.touched->capacity() != static_cast<std::size_t>(table.shape[0]))
    throw LogicError(spec.label + " has no list of touched rows for the " + std::to_string(table.shape[0]) +
                     " of its table");
  return "touched rows of " + table.text() + " by " + std::string(name_of(spec.algorithm));
}

std::vector<Tensor> tensors_of(const CollectiveSpec& spec) { return std::visit(AllTensors{}, spec); }

bool is_on_device(const CollectiveSpec& spec) { return std::visit(OnDevice{}, spec); }

const std::string& label_of(const CollectiveSpec& spec) {
  return std::visit([](const auto& one) -> const std::string& { return one.label; }, spec);
}

Description describe(const BroadcastSpec& spec) {
  return describe_elements(Kind::broadcast, spec.label, spec.tensor, spec.root);
}
Description describe(const ReduceSpec& spec) {
  return describe_elements(Kind::reduce, spec.label, spec.tensor, spec.root, spec.op);
}
Description describe(const ReduceScatterSpec& spec) {
  return describe_elements(Kind::reduce_scatter, spec.label, spec.all, -1, spec.op);
}
Description describe(const AllgatherSpec& spec) { return describe_elements(Kind::allgather, spec.label, spec.all); }
Description describe(const GatherSpec& spec) {
  return {Kind::gather, spec.label, {}, total(spec.counts), spec.mine.dtype(), ReduceOp::sum, spec.root};
}
Description describe(const ScatterSpec& spec) {
  return {Kind::scatter, spec.label, {}, total(spec.counts), spec.mine.dtype(), ReduceOp::sum, spec.root};
}
Description describe(const AlltoallSpec& spec) {
  return {Kind::alltoall, spec.label, {}, 0, spec.outgoing.dtype()};  // counts are each rank's own
}

Description describe(const SparseAllreduceSpec& spec) {
  return describe_elements(Kind::allreduce, spec.label, spec.table);
}

std::vector<Range> ranges_of(const Counts& counts) {
  std::vector<Range> ranges;
  std::size_t begin = 0;
  for (const std::size_t count : counts) {
    ranges.push_back({begin, begin + count});
    begin += count;
  }
  return ranges;
}

}  // namespace ronda
