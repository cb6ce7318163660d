#include <ronda/core/device_context.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/floats.hpp>
#include <ronda/core/number.hpp>
#include <ronda/core/parallel.hpp>

#include <cstring>
#include <unistd.h>

namespace ronda {
namespace {

template <Number From, Number To>
void sum(const From* from, const float* more, To* to, std::size_t count) {
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, float>) {
    if (more == nullptr) return static_cast<void>(std::memcpy(to, from, count * sizeof(float)));
    if (more == to) return add_floats(from, to, count);
    if (from == to) return add_floats(more, to, count);
  }
  for (std::size_t i = 0; i < count; ++i)
    to[i] = as_number<To>(more == nullptr ? as_float(from[i]) : as_float(from[i]) + more[i]);
}

class CpuContext final : public DeviceContext {
 public:
  explicit CpuContext(int threads) : threads_(threads) {}
  [[nodiscard]] Device device() const noexcept override { return {}; }
  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] std::string identity() const override { return "cpu"; }
  [[nodiscard]] std::size_t free_bytes() override {
    return static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  }
  std::unique_ptr<Stream> make_stream(StreamPriority) override { return std::make_unique<CpuStream>(threads_); }
  Buffer allocate(std::size_t bytes) override { return Buffer::host(bytes); }
  Buffer allocate_staging(std::size_t bytes) override { return Buffer::host(bytes); }
  std::shared_ptr<const void> pin(std::span<std::byte>) override { return nullptr; }
  void clear(void* memory, std::size_t bytes, Stream&) override {
    if (bytes > 0) std::memset(memory, 0, bytes);
  }
  void copy(const void* from, void* to, std::size_t bytes, Stream&) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void add(const Tensor& from, const float* more, const Tensor& to, Stream& stream) override {
    with_number(from.dtype(), [&]<class From>(std::type_identity<From>) {
      with_number(to.dtype(), [&]<class To>(std::type_identity<To>) {
        parallel_for(stream.threads(), static_cast<std::size_t>(from.desc().padded_count()), [&](Range part) {
          sum(from.pointer<const From>() + part.begin, more == nullptr ? nullptr : more + part.begin,
              to.pointer<To>() + part.begin, part.size());
        });
      });
    });
  }

 private:
  int threads_;
};

}  // namespace

std::unique_ptr<DeviceHash> DeviceContext::make_hash(std::span<const std::span<const std::byte>>) {
  throw LogicError(device().text() + " does not hash its memory by itself");
}

std::unique_ptr<DeviceContext> make_cpu_context(int threads) { return std::make_unique<CpuContext>(threads); }

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Tensor HostCopy::of(const Tensor& tensor) {
  if (tensor.device().kind == DeviceKind::cpu) return tensor;
  const std::size_t bytes = tensor.desc().bytes();
  if (memory_.bytes() < bytes) memory_ = device_.context->allocate_staging(bytes);
  device_.context->copy(tensor.data(), memory_.data(), bytes, *device_.stream);
  device_.stream->synchronize();
  return {tensor.desc(), memory_.data()};
}

}  // namespace ronda
