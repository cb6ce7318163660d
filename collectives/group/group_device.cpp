// How a group reduces and copies tensors on its ranks' devices: by NCCL, or through the host's memory.
#include <ronda/collectives/group/group.hpp>
#include <ronda/collectives/host/algorithms/ring.hpp>
#include <ronda/collectives/nccl/nccl_plan.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>

namespace ronda {
namespace {

/// What is copied at once, while what came before is reduced. Small enough that little is left to wait for at both
/// ends, large enough that a copy's and an allreduce's beginnings do not count.
constexpr std::size_t bytes_copied_at_once = std::size_t{4} << 20;

/// NCCL takes two ranks with the same GPU and the same of this for a mistake.
std::string place_of_gpu(const std::string& host, const std::string& identity) {
  const char* variable = std::getenv("NCCL_HOSTID");
  return (variable == nullptr ? host : std::string(variable)) + " " + identity;
}

}  // namespace

// ---- the device ---------------------------------------------------------------------------------------------------

void Communicator::Group::use_device(std::shared_ptr<DeviceContext> context, AllreduceAlgorithm wanted,
                                     const std::shared_ptr<nccl::Library>& library) {
  require_same("use_device", name_of(wanted));
  require_fitting(wanted, DeviceKind::cuda);
  const std::string mine = context->device().text() + ", " + context->name();
  agree(Communicator(shared_from_this()), [&] {
    device_ = OnDevice{std::make_shared<DeviceLanes>(std::move(context)), nullptr, ""};
  });
  if (size_ > 1) connect_devices(wanted, library);
  device_lines_ = gather_texts(mine);
  const std::string how = size_ == 1 ? "" : device_->clique != nullptr ? ", by nccl" : ", staged";
  for (std::size_t rank = 0; rank < device_lines_.size(); ++rank)
    device_lines_[rank] = name_of_rank(rank) + ": " + device_lines_[rank] + how;
}

void Communicator::Group::connect_devices(AllreduceAlgorithm wanted, const std::shared_ptr<nccl::Library>& library) {
  device_->refusal = nccl_refusal(wanted, library);
  if (wanted == AllreduceAlgorithm::staged) return;
  if (!device_->refusal.empty()) {
    if (wanted == AllreduceAlgorithm::nccl)
      agreed_on_all(
          [&] { throw InputError("--allreduce nccl: " + device_->refusal + "; take --allreduce staged or auto"); });
    notes_.push_back(device_->refusal + "; gradients go through the host's memory instead (--allreduce staged)");
    return;
  }
  nccl::Clique::Place place{.rank = rank_,
                            .names = {},
                            .gather = [this](std::string_view text) { return gather_texts(text); },
                            .deadline = timeout(),
                            .ledger = &ledger_,
                            .watchdog = engine_->watchdog()};
  for (std::size_t rank = 0; rank < topology().hosts.size(); ++rank) place.names.push_back(name_of_rank(rank));
  agreed_on_all([&] { device_->clique = std::make_shared<nccl::Clique>(library, device_->lanes, std::move(place)); });
}

/// Why NCCL cannot connect these ranks, the same on all; empty where it can.
std::string Communicator::Group::nccl_refusal(AllreduceAlgorithm wanted,
                                              const std::shared_ptr<nccl::Library>& library) {
  if (wanted == AllreduceAlgorithm::staged) return "--allreduce staged was asked for";
  const auto& hosts = topology().hosts;
  const std::string& host = hosts[static_cast<std::size_t>(rank_)];
  const auto versions = gather_texts(library == nullptr ? std::string() : library->version());
  const auto places = gather_texts(place_of_gpu(host, device_->lanes->context->identity()));
  std::map<std::string, std::size_t> first_on;
  for (std::size_t rank = 0; rank < versions.size(); ++rank) {
    if (versions[rank].empty()) return name_of_rank(rank) + " runs a program without NCCL";
    if (versions[rank] != versions[0])
      return name_of_rank(rank) + " has NCCL " + versions[rank] + ", " + name_of_rank(0) + " " + versions[0];
    const auto [other, alone] = first_on.emplace(places[rank], rank);
    if (!alone)
      return "ranks " + std::to_string(other->second) + " and " + std::to_string(rank) + " on " + hosts[rank] +
             " share a GPU, which NCCL refuses";
  }
  return {};
}

std::unique_ptr<Recording> Communicator::Group::watched(std::unique_ptr<Recording> recording,
                                                        const std::string& what) const {
  if (recording == nullptr || !device_ || device_->clique == nullptr) return recording;
  return nccl::watched(device_->clique, std::move(recording), what);
}

void Communicator::Group::require_devices() const {
  if (device_ && device_->clique != nullptr) device_->clique->require_whole();
}

Buffer Communicator::Group::allocate_on_device(std::size_t bytes) {
  if (!device_) throw LogicError("memory was asked for on a device that the communicator was not told of: use_device");
  if (device_->clique == nullptr || bytes == 0) return device_->lanes->context->allocate(bytes);
  std::string note;
  Buffer buffer;
  agreed_on_all([&] { buffer = device_->clique->allocate(bytes, note); });
  if (!note.empty()) notes_.push_back(note);
  return buffer;
}

/// True where all are on this rank's device, false where all are on the host.
bool Communicator::Group::on_device(std::span<const Tensor> tensors, const std::string& label) const {
  for (const Tensor& tensor : tensors) require_memory(tensor, label);
  const auto remote = [](const Tensor& tensor) { return tensor.device() != Device{}; };
  if (std::ranges::none_of(tensors, remote)) return false;
  if (!device_)
    throw LogicError(label + ": its tensors are on a device that the communicator was not told of: use_device");
  const Device device = device_->lanes->context->device();
  for (const Tensor& tensor : tensors)
    if (tensor.device() != device)
      throw LogicError(label + ": a tensor is on " + tensor.device().text() + ", this rank uses " + device.text());
  return true;
}

void Communicator::Group::require_on_host(const Tensor& tensor, const std::string& label) const {
  require_memory(tensor, label);
  if (tensor.device() != Device{})
    throw LogicError(label + ": on " + tensor.device().text() +
                     " there are allreduce, broadcast, allgather and reduce-scatter alone");
}

// ---- planning -----------------------------------------------------------------------------------------------------

std::unique_ptr<Collective> Communicator::Group::plan_on_device(const AllreduceSpec& spec, bool often) {
  require_fitting(spec.algorithm, DeviceKind::cuda);
  const bool loses_nan =
      std::ranges::any_of(spec.tensors, [&](const Tensor& tensor) { return nccl::loses_nan(spec.op, tensor.dtype()); });
  const bool by_nccl = size_ > 1 && device_->clique != nullptr && spec.algorithm != AllreduceAlgorithm::staged &&
                       !(spec.algorithm == AllreduceAlgorithm::automatic && loses_nan);
  if (spec.algorithm == AllreduceAlgorithm::nccl && size_ > 1 && !by_nccl)
    throw InputError(spec.label + " cannot be done by nccl: " + device_->refusal);
  if (by_nccl) {
    if (spec.compression != Compression::none && spec.compression != Compression::automatic)
      agreed_on_all([&] {
        throw InputError("--compression " + std::string(name_of(spec.compression)) +
                         ": NCCL sends gradients as they are; take --compression none or auto, or --allreduce staged");
      });
    require_same("planning " + spec.label, words_of(spec));
    return nccl::plan(device_->clique, spec, shared_from_this());
  }

  return plan_staged(spec, often);
}

/// In segments, of which each is a tensor of its own on the host.
std::unique_ptr<Collective> Communicator::Group::plan_staged(const AllreduceSpec& spec, bool often) {
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
      for (std::size_t begin = 0; size_ > 1 && begin < elements.count; begin += most) {
        const Elements device = elements.part({begin, std::min(begin + most, elements.count)});
        segments.push_back({device, arena.reserve(device.bytes().size()), tensors == &spec.exact});
      }
    }

  Buffer staging = allocate(arena.bytes(), Memory::node_shared);
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
  MadeAllreduce made = make_allreduce(on_host, often);
  for (std::size_t i = 0; i < pieces.size(); ++i) pieces[i].algorithm = std::move(made.algorithms[i]);
  const Description description{Kind::allreduce, spec.label, "staged", made.count, made.dtype, spec.op};
  return run_staged(std::move(staging), std::move(pieces), description, made.compression);
}

std::unique_ptr<Collective> Communicator::Group::plan_on_device(const BroadcastSpec& spec,
                                                                const Description& description) {
  if (device_->clique != nullptr) return nccl::plan(device_->clique, spec, shared_from_this());
  const Range all{0, elements_of(spec.tensor).count}, nothing;
  const bool gives = rank_ == spec.root;
  return plan_staged(spec.tensor, gives ? all : nothing, gives ? nothing : all, description, [&](const Elements& host) {
    return make_broadcast({host.data, host.bytes().size(), DType::uint8}, spec.root).algorithm;
  });
}

std::unique_ptr<Collective> Communicator::Group::plan_on_device(const AllgatherSpec& spec,
                                                                const std::vector<Range>& parts,
                                                                const Description& description) {
  if (device_->clique != nullptr) return nccl::plan(device_->clique, spec, parts, shared_from_this());
  const Range all{0, parts.back().end}, mine = parts[static_cast<std::size_t>(rank_)];
  return plan_staged(spec.all, mine, all, description, [&](const Elements& host) {
    return std::make_unique<Ring>(across_all(), host, Reduction{}, RingPart::allgather, parts);
  });
}

std::unique_ptr<Collective> Communicator::Group::plan_on_device(const ReduceScatterSpec& spec,
                                                                const std::vector<Range>& parts,
                                                                const Description& description) {
  if (device_->clique != nullptr && !nccl::loses_nan(spec.op, spec.all.dtype()))
    return nccl::plan(device_->clique, spec, parts, shared_from_this());
  const Range all{0, parts.back().end}, mine = parts[static_cast<std::size_t>(rank_)];
  return plan_staged(spec.all, all, mine, description, [&](const Elements& host) {
    return std::make_unique<Ring>(across_all(), host, Reduction{spec.op, size_}, RingPart::reduce_scatter, parts);
  });
}

/// In one piece: elements `out` are copied to the host before, `back` to the device after.
template <class Make>
std::unique_ptr<Collective> Communicator::Group::plan_staged(const Tensor& tensor, Range out, Range back,
                                                             const Description& description, Make&& make) {
  const Elements device = elements_of(tensor);
  Buffer staging = allocate(size_ > 1 ? device.bytes().size() : 0, Memory::per_rank);
  std::vector<Staged::Piece> pieces;
  if (size_ > 1 && device.count > 0) {
    const Elements host{staging.data(), device.count, device.dtype};
    const auto stretch = [&](Range range) {
      return Staged::Stretch{device.part(range).data, host.part(range).bytes()};
    };
    Staged::Piece& piece = pieces.emplace_back();
    if (out.size() > 0) piece.out = stretch(out);
    piece.algorithm = make(host);
    if (back.size() > 0) piece.back.push_back(stretch(back));
  }
  return run_staged(std::move(staging), std::move(pieces), description);
}

std::unique_ptr<Collective> Communicator::Group::run_staged(Buffer staging, std::vector<Staged::Piece> pieces,
                                                            const Description& description, Compression compression) {
  std::vector<std::unique_ptr<Algorithm>> algorithms;
  if (!pieces.empty()) {
    std::string note;
    algorithms.push_back(std::make_unique<Staged>(device_->lanes, std::move(staging), std::move(pieces), note));
    if (!note.empty() && std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(note);
  }
  const std::string_view name = size_ == 1 ? name_of(AllreduceAlgorithm::automatic) : "staged";
  Description named = description;
  named.run.algorithm = name;
  return std::make_unique<PlannedCollective>(engine_, std::move(algorithms), name, named, ledger_, shared_from_this(),
                                             compression);
}

}  // namespace ronda
