// Trainings in which faster ranks take more of a step.
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/trainer/hooks/shares.hpp>
#include <ronda/runtime/trainer/trainer.hpp>

#include "support/message.hpp"
#include "support/toy_data.hpp"
#include "trainer/saved_training.hpp"

using namespace ronda;
using namespace ronda::test;

namespace shares_test {
namespace {

using Counts = std::vector<std::size_t>;

/// The least time of all deals, by trying each.
double least(const std::vector<double>& seconds, std::size_t all, std::size_t rank = 0) {
  if (rank + 1 == seconds.size()) return static_cast<double>(all) * seconds[rank];
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t mine = 1; mine + (seconds.size() - rank - 1) <= all; ++mine)
    best = std::min(best, std::max(static_cast<double>(mine) * seconds[rank], least(seconds, all - mine, rank + 1)));
  return best;
}

/// May take the last rank 30 ms a batch to read, many times as long as computing.
class Slow final : public Dataset {
 public:
  explicit Slow(bool slow) : slow_(slow && world().rank() + 1 == world().size()) {}
  [[nodiscard]] std::size_t size() const override { return data_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return data_.fields(); }
  void read(const SampleRequest& request, Batch& batch) const override {
    if (request.epoch > 0 && slow_) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    data_.read(request, batch);
  }
  [[nodiscard]] std::uint64_t fingerprint() const override { return data_.fingerprint(); }

 private:
  bool slow_;
  MemoryDataset data_ = toy_images(90, {9, 7, 1}, 4);
};

struct Training {
  explicit Training(TrainingOptions options,
                    Sequential layers = Sequential(Conv2d(4, 3), Dropout(0.2), ReLU(), Flatten(), Dense(4)))
      : data(options.shares == "measured"),
        model(std::move(layers)),
        trainer(world(), model, loss, small(std::move(options))) {
    trainer.set_platform({ComputeDevice::processor(), make_reference_primitives()});
  }
  Evaluation fit() { return trainer.fit(data, data); }
  [[nodiscard]] std::vector<float> parameters() {
    std::vector<float> all;
    for (const Parameter& parameter : trainer.strategy().parameters()) {
      const auto values = parameter.value.as<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  Slow data;
  Sequential model;
  SoftmaxCrossEntropy loss;
  Trainer trainer;
};

TrainingOptions measured(const std::string& shares = "measured") {
  TrainingOptions options;
  options.accumulate = 4;
  options.shares = shares;
  if (shares == "measured") options.shares_every = 2;
  options.optimizer.name = "momentum";
  return options;
}

/// Deals the micro-batches anew after some steps, always alike.
class Dealer final : public Hook {
 public:
  void after_step(TrainingRun& run, const StepReport& report) override {
    const auto ranks = static_cast<std::size_t>(run.world().size()),
               rank = static_cast<std::size_t>(run.world().rank());
    const std::map<std::uint64_t, std::size_t> deals{{3, 1}, {5, 2}, {8, 0}, {11, 1}};
    const auto found = deals.find(report.step);
    if (found == deals.end()) return;
    const std::size_t more = found->second;
    // The first rank has `more` than its four, the last as many fewer.
    const std::size_t first = rank == 0 ? 0 : 4 * rank + more;
    std::size_t count = 4;
    if (rank == 0) count += more;
    if (rank + 1 == ranks) count -= more;
    run.deal({first, count, 4 * ranks});
  }
};

/// What is kept of a training's shares, by rank.
class Dealt final : public Hook {
 public:
  void on_end(TrainingRun& run) override {
    Summary summary;
    run.summarize(summary);
    deals = summary.shares.deals;
    counts.assign(summary.shares.micro_batches.begin(), summary.shares.micro_batches.end());
  }
  std::uint64_t deals = 0;
  Counts counts;
};

}  // namespace

TEST_CASE("a deal is as fast as the best of all deals; equal ranks take equal shares") {
  CHECK(fastest_deal(std::vector<double>{1, 1, 1}, 12) == Counts{4, 4, 4});
  CHECK(fastest_deal(std::vector<double>{1, 2}, 12) == Counts{8, 4});
  CHECK(fastest_deal(std::vector<double>{1, 1e9}, 8) == Counts{7, 1});
  CHECK(fastest_deal(std::vector<double>{3}, 5) == Counts{5});
  for (const std::vector<double>& seconds : {std::vector<double>{1, 1.3, 0.4}, {2, 1, 1}, {0.1, 5, 0.3}, {1, 1, 1.01}})
    for (std::size_t all = seconds.size(); all < 14; ++all)
      CHECK(longest(seconds, fastest_deal(seconds, all)) == least(seconds, all));
}

TEST_CASE("a slow rank takes less of each step, and the training is that of equal shares but for roundings") {
  Training equal(measured("equal")), uneven(measured());
  Dealt dealt;
  uneven.trainer.add(dealt);
  const Evaluation expected = equal.fit(), found = uneven.fit();
  CHECK(std::abs(found.loss - expected.loss) < 1e-5);  // float32; sums of gradients in another order
  const auto a = equal.parameters(), b = uneven.parameters();
  for (std::size_t i = 0; i < a.size(); ++i) REQUIRE(std::abs(a[i] - b[i]) < 1e-5);
  if (world().size() == 1) {
    CHECK(dealt.counts.empty());
    return;
  }
  REQUIRE(dealt.counts.size() == static_cast<std::size_t>(world().size()));
  CHECK(dealt.deals > 0);
  CHECK(dealt.counts.back() < dealt.counts.front());
}

TEST_CASE("a checkpoint keeps the shares; with another number of ranks they are measured anew") {
  const SharedFolder folder;
  TrainingOptions options = measured();
  options.checkpoint_dir = folder.path;
  run_until(5, options, [](TrainingOptions first) {
    auto training = std::make_unique<Training>(std::move(first));
    training->fit();
    return training;
  });
  options.resume = true;
  options.shares_every = 1000;  // nothing is measured any more
  Training resumed(options);
  Dealt dealt;
  resumed.trainer.add(dealt);
  resumed.fit();
  CHECK(dealt.deals == 0);
  if (world().size() > 1) CHECK(dealt.counts.back() < dealt.counts.front());
}

TEST_CASE("replicas that are repaired have the bits of a training without error, though shares changed meanwhile") {
  const auto trained = [](const std::string& fault) {
    TrainingOptions options = measured("equal");
    options.audit_every = 5;
    options.on_divergence = OnDivergence::rollback;
    if (!fault.empty()) options.faults = {parse_fault(fault)};
    Training training(options);
    Dealer dealer;
    training.trainer.add(dealer);
    training.fit();
    return training.trainer.strategy().parameter_hash();
  };
  const std::string expected = trained("");
  for (const char* fault : {"flip@2:1", "flip@4:1", "flip@5:1", "flip@6:1", "flip@9:1"}) {
    CAPTURE(fault);
    CHECK(trained(fault) == expected);
  }
}

TEST_CASE("a fit begins with equal shares, whatever the one before ended with") {
  const auto trained = [](bool deals) {
    Training training(measured("equal"));
    Dealer dealer;
    if (deals) training.trainer.add(dealer);
    training.fit();
    return training.fit().loss;
  };
  CHECK(std::abs(trained(true) - trained(false)) < 1e-5);  // float32; sums of gradients in another order
}

TEST_CASE("shares that cannot be measured are refused") {
  const auto message = [](TrainingOptions options, auto... layers) {
    return message_of<InputError>(
        [&] { Training(std::move(options), Sequential(Flatten(), Dense(4), layers...)).fit(); });
  };
  TrainingOptions options = measured();
  options.accumulate = 1;
  require_mentions(message(options), {".shares = measured", ".accumulate"});
  require_mentions(message(measured("fair")), {"'fair'", "equal or measured"});
  options = measured();
  options.exact = true;
  require_mentions(message(options), {".exact", ".shares = equal"});
  options = measured();
  options.shares_every = 0;
  require_mentions(message(options), {".shares_every"});
  if (world().size() > 1) require_mentions(message(measured(), SyncBatchNorm()), {"SyncBatchNorm", ".shares = equal"});
}

}  // namespace shares_test
