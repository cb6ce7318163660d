// Data that the GPU keeps or that is copied ahead, and steps that are begun ahead, give the batches and the training of
// steps one by one. Needs a GPU.
#include <cstring>

#include <ronda/core/cuda/stream.hpp>
#include <ronda/data/device_dataset.hpp>
#include <ronda/data/mnist.hpp>

#include "strategy/gpu_run.hpp"
#include "support/catch.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

/// Images with every byte, of a size that is no multiple of anything.
MnistDataset images(std::size_t count) {
  IdxArray pixels{Shape{static_cast<std::int64_t>(count), 13, 11}, Buffer::host(count * 143)},
      labels{Shape{static_cast<std::int64_t>(count)}, Buffer::host(count)};
  for (std::size_t i = 0; i < count * 143; ++i) pixels.values()[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  for (std::size_t i = 0; i < count; ++i) labels.values()[i] = static_cast<std::uint8_t>(i % 10);
  return {std::move(pixels), labels, "test"};
}

}  // namespace

TEST_CASE("a GPU makes batches of the data that it keeps, to the bit") {
  const MnistDataset data = images(300);
  const auto gpu = make_cuda_context(0);
  const auto stream = gpu->make_stream(StreamPriority::usual);
  const DeviceDataset kept(data, *gpu, *stream, cuda_gather);
  for (const std::size_t rows : {1, 64, 1000}) {
    std::vector<std::uint64_t> samples(rows);
    for (std::size_t i = 0; i < rows; ++i) samples[i] = i * 37 % 300;
    Batch read(data.fields(), rows), names = Batch::of_samples(data, rows);
    const Batch made(data.fields(), rows, *gpu);
    data.read({samples}, read);
    read.set_real(rows - rows / 3);
    names.set_samples(samples, rows - rows / 3);
    const auto request = names.request();
    const Buffer asked = gpu->allocate(request.size_bytes());
    gpu->copy(request.data(), asked.data(), request.size_bytes(), *stream);
    kept.gather(reinterpret_cast<const std::uint64_t*>(asked.data()), made, *stream);
    const auto same = [&](const Tensor& there, const Tensor& here) {
      std::vector<std::byte> found(here.desc().bytes());
      gpu->copy(there.data(), found.data(), found.size(), *stream);
      stream->synchronize();
      return std::memcmp(found.data(), here.data(), found.size()) == 0;
    };
    CHECK(same(made.input(), read.input()));
    CHECK(same(made.target(), read.target()));
    CHECK(same(made.weights(), read.weights()));
  }
}

TEST_CASE("a training on data that the GPU keeps has the bits of one that copies it, replayed and call by call") {
  const MemoryDataset data = toy_images(500, {14, 14, 4}, 10);
  Run copied(cnn(), data, {.gpu = true});
  const Picks picks = copied.strategy.picks();
  for (const bool record : {true, false}) {
    Run again(cnn(), data, {.gpu = true, .picks = picks});
    Run kept(cnn(), data, {.gpu = true, .record = record, .picks = picks, .keep_data = true});
    REQUIRE(kept.strategy.plan_hash() == again.strategy.plan_hash());
    REQUIRE(kept.strategy.keeps(data));
    CHECK(kept.steps(30) == again.steps(30));
    const Evaluation a = again.strategy.evaluate(again.loader), b = kept.strategy.evaluate(kept.loader);
    CHECK(b.loss == a.loss);
    CHECK(kept.parameters() == again.parameters());
  }
}

TEST_CASE("steps begun before the last ones were looked at have the bits of steps one by one") {
  const MemoryDataset data = toy_images(500, {14, 14, 4}, 10);
  const auto gpu = make_cuda_context(0);
  Run first(cnn(), data, {.gpu = true});
  const Picks picks = first.strategy.picks();
  for (const bool keep_data : {true, false})
    for (const bool record : {true, false}) {
      Run one_by_one(cnn(), data, {.gpu = true, .picks = picks});
      Run many(cnn(), data,
               {.gpu = true,
                .record = record,
                .picks = picks,
                .keep_data = keep_data,
                .in_flight = 4,
                .ahead = keep_data ? nullptr : gpu.get()});
      REQUIRE(many.strategy.plan_hash() == one_by_one.strategy.plan_hash());
      for (const double loss : many.losses_ahead(40))
        CHECK(loss == one_by_one.strategy.train_step(one_by_one.loader.next()).loss);
      CHECK(many.parameters() == one_by_one.parameters());
    }
}

TEST_CASE("the host waits for nothing in a step") {
  const MemoryDataset data = toy_images(500, {14, 14, 4}, 10);
  const auto gpu = make_cuda_context(0);
  for (const bool keep_data : {true, false}) {
    Run run(cnn(), data,
            {.gpu = true, .keep_data = keep_data, .in_flight = 4, .ahead = keep_data ? nullptr : gpu.get()});
    static_cast<void>(run.losses_ahead(10));
    const auto& stream = cuda::gpu_stream(*run.device.stream);
    const std::uint64_t before = stream.host_waits();
    for (int k = 0; k < 4; ++k) run.strategy.begin_step(run.loader.next());
    CHECK(stream.host_waits() == before);
    for (int k = 0; k < 4; ++k) CHECK_FALSE(run.strategy.finish_step().nonfinite);
  }
}
