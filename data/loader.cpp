#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/detail/epoch_samples.hpp>
#include <ronda/data/loader.hpp>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ronda {
namespace {

/// A micro-batch's place in the training.
struct Position {
  std::uint64_t epoch = 1;
  std::size_t step = 0, micro_batch = 0;
  bool operator==(const Position&) const = default;

  [[nodiscard]] Position after(const BatchPlan& plan) const {
    if (micro_batch + 1 < plan.micro_batches()) return {epoch, step, micro_batch + 1};
    if (step + 1 < plan.steps_per_epoch()) return {epoch, step + 1, 0};
    return {epoch + 1, 0, 0};
  }
};

/// Puts a batch together. Used by one thread at a time.
class Assembler {
 public:
  /// A device that holds the data waits for nothing but names, and so would wait for an epoch's order.
  Assembler(const Dataset& data, SampleOrder order, const BatchPlan& plan, const LoaderOptions& options)
      : data_(data),
        seed_(order.seed()),
        varies_(options.varies),
        samples_(order, options.contents == BatchContents::samples),
        rows_(plan.capacity()) {
    if (data.size() != order.size() || data.size() != plan.size())
      throw LogicError("a dataset of " + std::to_string(data.size()) + " samples, an order of " +
                       std::to_string(order.size()) + " and a plan of " + std::to_string(plan.size()) +
                       " do not belong together");
  }

  void assemble(const BatchPlan& plan, const Position& position, Batch& batch) {
    samples_.set_epoch(position.epoch);
    const Range part = plan.part(position.step, position.micro_batch);
    const std::size_t last = part.size() > 0 ? part.end - 1 : part.begin;
    for (std::size_t row = 0; row < rows_.size(); ++row) rows_[row] = samples_[std::min(part.begin + row, last)];
    batch.set_first_row(plan.first_row(position.step, position.micro_batch));
    if (batch.source() != nullptr) {
      batch.set_samples(rows_, part.size());
      return samples_.draw_ahead(plan.size() / (plan.steps_per_epoch() * plan.micro_batches()) + 1);
    }
    batch.set_real(part.size());
    data_.read({rows_, varies_ ? position.epoch : 0, seed_}, batch);
    check_weights(batch);
    batch.clear_padding_weights();
  }

 private:
  /// Checks the weights that the dataset has written.
  void check_weights(const Batch& batch) const {
    const auto weights = batch.weights().as<const float>().first(batch.real());
    const auto sound = [](float weight) {  // NaN is not
      return weight == 0 || (weight >= Dataset::smallest_weight && weight <= Dataset::largest_weight);
    };
    const auto bad = std::ranges::find_if_not(weights, sound);
    if (bad == weights.end()) return;
    throw InputError("sample " + std::to_string(rows_[static_cast<std::size_t>(bad - weights.begin())]) +
                     " has the weight " + shortest(*bad) + "; a weight is 0, or a number from " +
                     shortest(Dataset::smallest_weight) + " to " + shortest(Dataset::largest_weight));
  }

  const Dataset& data_;
  std::uint64_t seed_;
  bool varies_;
  EpochSamples samples_;
  std::vector<std::uint64_t> rows_;  ///< of the batch
};

Batch batch_of(const Dataset& data, std::size_t capacity, const LoaderOptions& options) {
  if (options.contents == BatchContents::samples) return Batch::of_samples(data, capacity);
  if (options.staging != nullptr) return Batch::staging(data.fields(), capacity, *options.staging);
  return {data.fields(), capacity};
}

}  // namespace

/// The batches form a ring: the caller has so many as he may keep, and with a thread that fills one more. `next` goes
/// on by one.
struct BatchLoader::Impl {
  Impl(const Dataset& data, SampleOrder order, BatchPlan batch_plan, const LoaderOptions& options)
      : plan(batch_plan), assembler(data, order, plan, options) {
    const bool prefetches = options.prefetch && !plan.is_empty();
    const std::size_t count = plan.is_empty() ? 1 : std::max<std::size_t>(options.kept, 1) + (prefetches ? 1 : 0);
    for (std::size_t i = 0; i < count; ++i) batches.push_back(batch_of(data, plan.capacity(), options));
    if (prefetches) thread = std::thread([this] { run(); });
  }
  ~Impl() {
    if (!thread.joinable()) return;
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    thread.join();
  }

  /// The thread: fills the batch that the caller does not have, whenever it is empty.
  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return stopping || !filled; });
      if (stopping) return;
      const Position position = upcoming;
      const BatchPlan now = plan;
      const std::size_t deals_then = deals;
      Batch& batch = batches[after(current)];
      lock.unlock();
      std::exception_ptr failure;
      try {
        assembler.assemble(now, position, batch);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (position == upcoming && deals == deals_then) {  // otherwise the caller has gone elsewhere: once more
        filled = true;
        error = failure;
        changed.notify_all();
      }
    }
  }

  const Batch& next() {
    if (!thread.joinable()) {
      if (!plan.is_empty() || !assembled) assembler.assemble(plan, upcoming, batches[after(current)]);
      assembled = true;
      current = after(current);
      upcoming = upcoming.after(plan);
      return batches[current];
    }
    std::exception_ptr failure;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return filled; });
      filled = false;
      failure = std::exchange(error, nullptr);
      if (!failure) {
        current = after(current);
        upcoming = upcoming.after(plan);
      }
    }
    changed.notify_all();
    if (failure) std::rethrow_exception(failure);
    return batches[current];
  }

  void seek(const Position& position) {
    {
      const std::lock_guard lock(mutex);
      if (position == upcoming) return;
      upcoming = position;
      filled = false;
    }
    changed.notify_all();
  }

  void deal(const Deal& deal) {
    {
      const std::lock_guard lock(mutex);
      if (upcoming.micro_batch > 0) throw LogicError("micro-batches are dealt between two steps, not within one");
      plan = plan.dealt(deal);
      ++deals;
      filled = false;
    }
    changed.notify_all();
  }

  [[nodiscard]] std::size_t after(std::size_t place) const noexcept { return (place + 1) % batches.size(); }

  BatchPlan plan;  ///< changed by the caller's thread alone, under the mutex
  Assembler assembler;
  std::vector<Batch> batches;
  std::size_t current = 0;  ///< the batch that the caller was given last
  Position upcoming;        ///< of the batch that `next` gives
  bool assembled = false;   ///< a batch: that of an empty shard stays as it is
  std::size_t deals = 0;    ///< how often the plan was changed
  std::mutex mutex;         ///< guards all below, and `current`, `upcoming` and `deals`
  std::condition_variable changed;
  bool filled = false;  ///< the other batch holds `upcoming`, or `error` says why not
  bool stopping = false;
  std::exception_ptr error;
  std::thread thread;
};

BatchLoader::BatchLoader(const Dataset& data, SampleOrder order, BatchPlan plan, LoaderOptions options)
    : impl_(std::make_unique<Impl>(data, order, plan, options)) {}
BatchLoader::~BatchLoader() = default;

const BatchPlan& BatchLoader::plan() const noexcept { return impl_->plan; }
const Batch& BatchLoader::next() { return impl_->next(); }

void BatchLoader::seek(std::uint64_t epoch, std::size_t step) {
  const std::size_t steps = plan().steps_per_epoch();
  if (epoch == 0 || step > steps)
    throw LogicError("there is no step " + std::to_string(step) + " of epoch " + std::to_string(epoch) +
                     ": epochs count from 1, steps from 0, and an epoch has " + std::to_string(steps));
  impl_->seek(step < steps ? Position{epoch, step, 0} : Position{epoch + 1, 0, 0});
}

void BatchLoader::deal(const Deal& deal) { impl_->deal(deal); }

}  // namespace ronda
