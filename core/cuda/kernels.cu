#include <ronda/core/cuda/kernels.hpp>
#include <ronda/core/cuda/launch.cuh>
#include <ronda/core/cuda/stream.hpp>
#include <ronda/core/hash_arithmetic.hpp>
#include <ronda/core/number.hpp>

#include <algorithm>

namespace ronda::cuda {
namespace {

template <Number From, Number To>
struct Add {
  const From* from;
  const float* more;
  To* to;
  __device__ void operator()(std::int64_t i) const {
    const float value = as_float(from[i]);
    to[i] = as_number<To>(more == nullptr ? value : value + more[i]);
  }
};

template <Number From, Number To>
void launch(const Tensor& from, const float* more, const Tensor& to, Stream& stream) {
  for_each(handle_of(stream), from.desc().padded_count(), Add<From, To>{from.pointer<From>(), more, to.pointer<To>()});
}

}  // namespace

void add(const Tensor& from, const float* more, const Tensor& to, Stream& stream) {
  with_number(from.dtype(), [&]<class From>(std::type_identity<From>) {
    if (to.dtype() == DType::float32)
      launch<From, float>(from, more, to, stream);
    else
      launch<From, From>(from, more, to, stream);
  });
}

namespace {

using namespace device_hash;

class CudaHash final : public DeviceHash {
 public:
  CudaHash(DeviceContext& context, std::span<const std::span<const std::byte>> memory) : context_(context) {
    const Tables tables = Tables::of(memory);
    count_ = static_cast<std::int64_t>(tables.pieces.size());
    calls_ = tables.calls;
    const auto stream = context.make_stream(StreamPriority::usual);
    pieces_ = upload(std::as_bytes(std::span(tables.pieces)), *stream);
    piece_of_group_ = upload(std::as_bytes(std::span(tables.piece_of_group)), *stream);
    sums_ = context.allocate(tables.calls * sizeof(std::uint64_t));
    hashes_ = context.allocate(tables.pieces.size() * sizeof(std::uint64_t));
    here_ = context.allocate_staging(tables.pieces.size() * sizeof(std::uint64_t));
    stream->synchronize();
  }

  void run(std::span<std::uint64_t> hashes, Stream& stream) override {
    const auto* const pieces = reinterpret_cast<const Piece*>(pieces_.data());
    auto* const sums = reinterpret_cast<std::uint64_t*>(sums_.data());
    for_each(handle_of(stream), calls_,
             SumWords{pieces, reinterpret_cast<const std::uint32_t*>(piece_of_group_.data()), sums});
    for_each(handle_of(stream), count_, SumCalls{pieces, sums, reinterpret_cast<std::uint64_t*>(hashes_.data())});
    context_.copy(hashes_.data(), here_.data(), here_.bytes(), stream);
    stream.synchronize();
    std::copy_n(reinterpret_cast<const std::uint64_t*>(here_.data()), hashes.size(), hashes.begin());
  }

 private:
  Buffer upload(std::span<const std::byte> bytes, Stream& stream) const {
    Buffer buffer = context_.allocate(bytes.size());
    context_.copy(bytes.data(), buffer.data(), bytes.size(), stream);
    return buffer;
  }

  DeviceContext& context_;
  std::int64_t count_ = 0, calls_ = 0;
  Buffer pieces_, piece_of_group_, sums_, hashes_, here_;
};

}  // namespace

std::unique_ptr<DeviceHash> make_hash(DeviceContext& context, std::span<const std::span<const std::byte>> pieces) {
  return std::make_unique<CudaHash>(context, pieces);
}

}  // namespace ronda::cuda
