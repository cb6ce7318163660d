#include <ronda/collectives/host/algorithms/ring.hpp>
#include <ronda/collectives/members/spec_check.hpp>
#include <ronda/collectives/staged/staged_backend.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

/// What is copied at once, while what came before is reduced. Small enough that little is left to wait for at both
/// ends, large enough that a copy's and an allreduce's beginnings do not count.
constexpr std::size_t bytes_copied_at_once = std::size_t{4} << 20;

}  // namespace

std::unique_ptr<Collective> StagedBackend::plan(const CollectiveSpec& spec, bool often) {
  if (const auto* allreduce = std::get_if<AllreduceSpec>(&spec)) return planned(*allreduce, often);
  if (const auto* broadcast = std::get_if<BroadcastSpec>(&spec)) return planned(*broadcast);
  if (const auto* allgather = std::get_if<AllgatherSpec>(&spec)) return planned(*allgather);
  if (const auto* reduce_scatter = std::get_if<ReduceScatterSpec>(&spec)) return planned(*reduce_scatter);
  throw LogicError(label_of(spec) + ": there is none of tensors on a device");
}

/// In segments, of which each is a tensor of its own on the host.
std::unique_ptr<Collective> StagedBackend::planned(const AllreduceSpec& spec, bool often) {
  const int size = members_.size();
  require_fitting(spec.algorithm, DeviceKind::cuda);
  if (spec.algorithm == AllreduceAlgorithm::nccl && size > 1)
    throw InputError(spec.label + " cannot be done by nccl: " + refusal_);
  struct Segment {
    Elements device;
    std::size_t offset;  ///< on the host
    bool exact;
  };
  std::vector<Segment> segments;
  ArenaPlan arena;
  for (const auto* tensors : {&spec.tensors, &spec.exact})
    for (const Tensor& tensor : *tensors) {
      const Elements elements = elements_of(tensor);
      const std::size_t most = bytes_copied_at_once / size_of(elements.dtype);
      for (std::size_t begin = 0; size > 1 && begin < elements.count; begin += most) {
        const Elements device = elements.part({begin, std::min(begin + most, elements.count)});
        segments.push_back({device, arena.reserve(device.bytes().size()), tensors == &spec.exact});
      }
    }

  Buffer staging = memory_.allocate(arena.bytes(), Memory::node_shared);
  AllreduceSpec on_host = spec;
  on_host.algorithm = AllreduceAlgorithm::automatic;
  on_host.tensors.clear();
  on_host.exact.clear();
  std::vector<Staged::Piece> pieces;
  for (const auto& [device, offset, exact] : segments) {
    const std::span host(staging.data() + offset, device.bytes().size());
    const TensorDesc desc{Shape{static_cast<std::int64_t>(device.count)}, device.dtype, {}};
    (exact ? on_host.exact : on_host.tensors).emplace_back(desc, host.data());
    pieces.push_back({Staged::Stretch{device.data, host}, nullptr, {{device.data, host}}});
  }
  AllreducePlanner::Plan made = host_.allreduces().make(on_host, often);
  for (std::size_t i = 0; i < pieces.size(); ++i) pieces[i].algorithm = std::move(made.algorithms[i]);
  const Description description{Kind::allreduce, spec.label, "staged", made.count, made.dtype, spec.op};
  return run(std::move(staging), std::move(pieces), description, made.compression);
}

std::unique_ptr<Collective> StagedBackend::planned(const BroadcastSpec& spec) {
  const Range all{0, elements_of(spec.tensor).count}, nothing;
  const bool gives = members_.rank() == spec.root;
  const auto make = [&](const Elements& host) {
    return host_.make_broadcast({host.data, host.bytes().size(), DType::uint8}, spec.root).algorithm;
  };
  return in_one_piece(spec.tensor, gives ? all : nothing, gives ? nothing : all, describe(spec), make);
}

std::unique_ptr<Collective> StagedBackend::planned(const AllgatherSpec& spec) {
  const auto parts = ranges_of(spec.counts);
  const Range all{0, parts.back().end}, mine = parts[static_cast<std::size_t>(members_.rank())];
  return in_one_piece(spec.all, mine, all, describe(spec), [&](const Elements& host) {
    return std::make_unique<Ring>(links_.across_all(), host, Reduction{}, RingPart::allgather, parts);
  });
}

std::unique_ptr<Collective> StagedBackend::planned(const ReduceScatterSpec& spec) {
  const auto parts = ranges_of(spec.counts);
  const Range all{0, parts.back().end}, mine = parts[static_cast<std::size_t>(members_.rank())];
  const Reduction reduction{spec.op, members_.size()};
  return in_one_piece(spec.all, all, mine, describe(spec), [&](const Elements& host) {
    return std::make_unique<Ring>(links_.across_all(), host, reduction, RingPart::reduce_scatter, parts);
  });
}

/// Elements `out` are copied to the host before, `back` to the device after.
template <class Make>
std::unique_ptr<Collective> StagedBackend::in_one_piece(const Tensor& tensor, Range out, Range back,
                                                        const Description& description, Make&& make) {
  const Elements device = elements_of(tensor);
  const bool alone = members_.size() == 1;
  Buffer staging = memory_.allocate(alone ? 0 : device.bytes().size(), Memory::per_rank);
  std::vector<Staged::Piece> pieces;
  if (!alone && device.count > 0) {
    const Elements host{staging.data(), device.count, device.dtype};
    const auto stretch = [&](Range range) {
      return Staged::Stretch{device.part(range).data, host.part(range).bytes()};
    };
    Staged::Piece& piece = pieces.emplace_back();
    if (out.size() > 0) piece.out = stretch(out);
    piece.algorithm = make(host);
    if (back.size() > 0) piece.back.push_back(stretch(back));
  }
  return run(std::move(staging), std::move(pieces), description);
}

std::unique_ptr<Collective> StagedBackend::run(Buffer staging, std::vector<Staged::Piece> pieces,
                                               const Description& description, Compression compression) {
  std::vector<std::unique_ptr<Algorithm>> algorithms;
  if (!pieces.empty()) {
    std::string note;
    algorithms.push_back(std::make_unique<Staged>(lanes_, std::move(staging), std::move(pieces), note));
    if (!note.empty() && note != last_note_) members_.add_note(note);
    last_note_ = note;
  }
  const std::string_view name = members_.size() == 1 ? name_of(AllreduceAlgorithm::automatic) : "staged";
  return links_.planned(std::move(algorithms), name, description, compression);
}

}  // namespace ronda
