#include <ronda/core/device_context.hpp>
#include <ronda/core/error.hpp>

#include <unistd.h>

#include <cstring>

namespace ronda {
namespace {

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

 private:
  int threads_;
};

}  // namespace

void DeviceContext::add(const Tensor&, const float*, const Tensor&, Stream&) {
  throw LogicError(device().text() + " does not add by itself");
}

std::unique_ptr<DeviceHash> DeviceContext::make_hash(std::span<const std::span<const std::byte>>) {
  throw LogicError(device().text() + " does not hash its memory by itself");
}

std::unique_ptr<DeviceContext> make_cpu_context(int threads) { return std::make_unique<CpuContext>(threads); }

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace ronda
