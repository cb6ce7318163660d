#include <ronda/core/cuda/launch.cuh>
#include <ronda/core/cuda/stream.hpp>
#include <ronda/core/error.hpp>
#include <ronda/optim/device_arithmetic.hpp>
#include <ronda/optim/device_groups.hpp>

namespace ronda {
namespace {

using namespace device_update;

template <Number T>
class CudaUpdate final : public DeviceUpdate {
 public:
  CudaUpdate(DeviceContext& context, const Optimizer& optimizer, const OptimizerBindings& bindings,
             const LayerArenas& layers, std::size_t count, const DeviceUpdateOptions& options, Stream& stream)
      : context_(context), count_(static_cast<std::int64_t>(count)) {
    if (options.rates.empty()) throw LogicError("an update on a device needs at least one learning rate");
    const DeviceGroups groups = DeviceGroups::of(optimizer, bindings, count);
    lines_ = upload(groups.group_of_line.data(), groups.group_of_line.size() * sizeof(std::uint16_t), stream);
    groups_ = upload(groups.groups.data(), groups.groups.size() * sizeof(Group), stream);
    rates_ = upload(options.rates.data(), options.rates.size() * sizeof(double), stream);
    scalars_ = context.allocate(groups.groups.size() * sizeof(rules::Scalars));
    outcome_ = context.allocate(sizeof(DeviceOutcome));
    norm_asked_ = options.needs_norm();
    const T* const gradients = reinterpret_cast<const T*>(layers.gradients);
    if (norm_asked_) sums_ = context.allocate((partial_sums + sums_of_partials + 1) * sizeof(double));
    squares_ = SumSquares<T>{gradients, at<std::uint16_t>(lines_), count_, at<double>(sums_)};
    decide_ = {.hyperparameters = optimizer.hyperparameters(),
               .groups = at<Group>(groups_),
               .group_count = static_cast<std::int64_t>(groups.groups.size()),
               .rates = at<double>(rates_),
               .rate_count = static_cast<std::int64_t>(options.rates.size()),
               .loss_scale = options.loss_scale,
               .clip_norm = options.clip_norm,
               .squared_norm = norm_asked_ ? at<double>(sums_) + partial_sums + sums_of_partials : nullptr,
               .check_gradients = options.looks_at_gradients(),
               .more_scale = options.more_scale,
               .total = nullptr,
               .outcome = at<DeviceOutcome>(outcome_),
               .scalars = at<rules::Scalars>(scalars_)};
    const auto state = [&](std::size_t i) { return i < bindings.states.size() ? bindings.states[i] : nullptr; };
    update_ = Update<T>{decide_.hyperparameters.kind,
                        decide_.outcome,
                        decide_.scalars,
                        at<std::uint16_t>(lines_),
                        bindings.values,
                        gradients,
                        state(0),
                        state(1),
                        reinterpret_cast<T*>(layers.values)};
    stream.synchronize();  // what was uploaded may go
  }

  void step(const StepControl* total, Stream& stream) override {
    const cudaStream_t handle = cuda::handle_of(stream);
    if (norm_asked_) {
      double* const sums = at<double>(sums_);
      cuda::for_each(handle, partial_sums, squares_);
      cuda::for_each(handle, sums_of_partials, SumPartials{sums, partial_sums, sums_of_partials, sums + partial_sums});
      cuda::for_each(handle, 1,
                     SumPartials{sums + partial_sums, sums_of_partials, 1, sums + partial_sums + sums_of_partials});
    }
    Decide decide = decide_;
    decide.total = total;
    cuda::for_each(handle, 1, decide);
    cuda::for_each(handle, count_, update_);
  }

  void round_values(Stream& stream) override {
    if (update_.rounded != nullptr)
      cuda::for_each(cuda::handle_of(stream), count_, Round<T>{update_.values, update_.rounded});
  }

  [[nodiscard]] const DeviceOutcome* outcome() const noexcept override { return decide_.outcome; }

  void set_updates(std::uint64_t updates, Stream& stream) override {
    context_.copy(&updates, &decide_.outcome->updates, sizeof updates, stream);
    stream.synchronize();
  }

 private:
  template <class Element>
  static Element* at(const Buffer& buffer) {
    return reinterpret_cast<Element*>(buffer.data());
  }
  Buffer upload(const void* from, std::size_t bytes, Stream& stream) const {
    Buffer buffer = context_.allocate(bytes);
    context_.copy(from, buffer.data(), bytes, stream);
    return buffer;
  }

  DeviceContext& context_;
  std::int64_t count_;
  bool norm_asked_ = false;
  Buffer lines_, groups_, rates_, scalars_, outcome_, sums_;
  SumSquares<T> squares_{};
  Decide decide_{};
  Update<T> update_{};
};

}  // namespace

std::unique_ptr<DeviceUpdate> make_cuda_update(DeviceContext& context, const Optimizer& optimizer,
                                               const OptimizerBindings& bindings, const LayerArenas& layers,
                                               std::size_t count, const DeviceUpdateOptions& options, Stream& stream) {
  return with_number(layers.dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<DeviceUpdate> {
    return std::make_unique<CudaUpdate<T>>(context, optimizer, bindings, layers, count, options, stream);
  });
}

}  // namespace ronda
