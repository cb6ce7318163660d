// A key-value store over MPI.
#include "support/memory.hpp"
#include "support/message.hpp"
#include "support/rank_case.hpp"
#include "support/sanitizer.hpp"

#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>
#include <ronda/runtime/key_value/detail/channel.hpp>
#include <ronda/runtime/key_value/key_value_store.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace ronda {
namespace {

int ranks() { return test::world().size(); }
int rank() { return test::world().rank(); }

using Numbers = std::vector<float>;
using Body = std::function<void(KeyValueStore&)>;

void adds(const KeyPart& /*part*/, std::uint64_t /*update*/, std::span<float> values, std::span<const float> gradient) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += gradient[i];
}

/// Workers do `work`, and close; servers serve. Returns what this rank counted.
KeyValueStatistics with_store(KeyValueStore store, const Body& work) {
  if (store.is_server()) {
    store.serve();
  } else {
    work(store);
    store.close();
  }
  return store.statistics();
}

KeyValueStatistics with_store(const KeyValueOptions& options, const Body& work) {
  return with_store(KeyValueStore(test::world().communicator(), options), work);
}

KeyValueStore adding_store(const KeyValueOptions& options) {
  KeyValueStore store(test::world().communicator(), options);
  store.set_updater(adds);
  return store;
}

std::vector<std::uint64_t> by_rank(std::uint64_t count) {
  std::vector<std::uint64_t> counts;
  for (const std::string& text : test::world().communicator().gather_texts(std::to_string(count)))
    counts.push_back(std::stoull(text));
  return counts;
}

/// Numbers whose sums are not exact.
Numbers noise(std::size_t count, int of_rank, int step) {
  Numbers numbers(count);
  const RngKey key(static_cast<std::uint64_t>(step), Purpose::test, static_cast<std::uint64_t>(of_rank));
  for (std::size_t i = 0; i < count; ++i) numbers[i] = key.normal(i);
  return numbers;
}

/// The mean of all workers' noise as a round has it.
Numbers mean_noise(std::size_t count, int workers, int step) {
  Numbers sum = noise(count, 0, step);
  for (int worker = 1; worker < workers; ++worker) {
    const Numbers other = noise(count, worker, step);
    for (std::size_t i = 0; i < count; ++i) sum[i] += other[i];
  }
  if (workers > 1)
    for (float& number : sum) number *= 1 / static_cast<float>(workers);
  return sum;
}

RANK_CASE("a channel keeps little of the messages that once waited in it") {
  if (ranks() < 2 || !test::counts_heap() || test::ranks_are_threads()) return;  // the heap is the process's
  Communicator all = test::world().communicator();
  constexpr std::uint64_t count = 500;
  std::vector<std::byte> bytes(20'000);       // long enough to wait for who receives them
  std::int64_t kept = std::int64_t{1} << 40;  // the least: MPI takes memory for so many, and keeps it
  for (int round = 0; round < 4; ++round) {
    const std::int64_t before = test::heap_bytes();
    std::optional<Channel> channel;
    if (rank() < 2) channel.emplace(all, 1 - rank());
    for (std::uint64_t i = 0; rank() == 0 && i < count; ++i)
      channel->send({.operation = i, .bytes = bytes.size()}, bytes);
    all.barrier();
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; rank() == 1 && i < count; ++i) {
      channel->listen();
      all.wait_until([&] {
        const MessageHeader* header = channel->receive([&](const MessageHeader&) { return std::span(bytes); });
        if (header != nullptr) sum += header->operation;
        return header != nullptr;
      });
    }
    if (rank() == 1) CHECK(sum == count * (count - 1) / 2);
    if (rank() == 0) all.wait_until([&] { return !channel->sending(); });
    kept = std::min(kept, test::heap_bytes() - before);
    all.barrier();
  }
  CHECK(kept < std::int64_t{100} << 10);
}

RANK_CASE("there are a server and a worker, or one message says why not") {
  const auto open = [&](int servers) {
    return test::message_of<Error>([&] { KeyValueStore(test::world().communicator(), {.servers = servers}); });
  };
  const std::string given = " of " + std::to_string(ranks()) + (ranks() == 1 ? " rank: " : " ranks: ");
  CHECK(open(0) == ".servers = 0" + given + "values need one server or more");
  CHECK(open(ranks()) == ".servers = " + std::to_string(ranks()) + given +
                             "no rank is left as a worker; take fewer servers, or start " +
                             std::to_string(ranks() + 1) + " ranks or more");
}

RANK_CASE("options that cannot be are refused on all ranks") {
  if (ranks() == 1) return;
  const auto open = [&](const KeyValueOptions& options) {
    return test::message_of<Error>([&] { KeyValueStore(test::world().communicator(), options); });
  };
  CHECK(open({.replicas_to_aggregate = ranks()}).starts_with(".replicas_to_aggregate = "));
  CHECK(open({.replicas_to_aggregate = -1}).starts_with(".replicas_to_aggregate = -1: "));
  CHECK(open({.asynchronous = true, .replicas_to_aggregate = 1}).find("goes with rounds") != std::string::npos);
  CHECK(open({.max_staleness = 3}).find("goes with .asynchronous") != std::string::npos);
  CHECK(open({.part_bytes = 100}) == ".part_bytes = 100: expected a multiple of 64");
  const std::string differ = open({.part_bytes = rank() == 0 ? std::size_t{64} : std::size_t{128}});
  CHECK(differ.find("the options of the key-value store") != std::string::npos);
  CHECK(differ.find("part_bytes 64") != std::string::npos);
}

RANK_CASE("values of any size go to the servers and come back") {
  for (const int servers : {1, 2}) {
    if (servers >= ranks()) continue;
    const std::vector<std::size_t> counts{0, 1, 7, 16, 1023, 20'011};
    with_store({.servers = servers, .part_bytes = 4096}, [&](KeyValueStore& store) {
      std::vector<Numbers> first;
      std::vector<KeyValueStore::Value> values;
      for (const std::size_t count : counts) first.push_back(noise(count, rank(), 0));
      for (std::size_t i = 0; i < counts.size(); ++i) values.push_back({"layer/" + std::to_string(i), first[i]});
      store.init(values);
      store.init("one more, ünd odd", noise(5, rank(), 0));
      for (std::size_t i = 0; i < counts.size(); ++i) {
        Numbers out(counts[i], 7.0F);
        store.pull(values[i].key, out);
        CHECK(out == noise(counts[i], 0, 0));  // the first worker's
        store.push(values[i].key, noise(counts[i], rank(), 1));
        store.pull(values[i].key, out);
        CHECK(out == mean_noise(counts[i], store.roles().workers(), 1));
        CHECK(store.version(values[i].key) == (counts[i] == 0 ? 0 : 1));
      }
    });
  }
}

RANK_CASE("servers may be the first ranks, or any") {
  for (const int server : {0, 1}) {
    if (ranks() < 2) continue;
    Numbers first = noise(100, 0, 0);
    with_store({.server_ranks = {server}}, [&](KeyValueStore& store) {
      CHECK(store.roles().rank_of_server(0) == server);
      store.init("values", first);
      Numbers out(100);
      store.push("values", noise(100, store.roles().index_of(rank()), 1));
      store.pull("values", out);
      CHECK(out == mean_noise(100, ranks() - 1, 1));
    });
  }
  if (ranks() > 1)
    CHECK(test::message_of<Error>([&] {
            KeyValueStore(test::world().communicator(), {.server_ranks = {ranks()}});
          }).starts_with("rank " + std::to_string(ranks()) + " cannot be a server"));
}

/// What one optimizer makes of `steps` mean gradients, of all numbers together.
Numbers plain_training(std::size_t count, const OptimizerOptions& options, const Schedule& schedule, int workers,
                       int steps) {
  const auto optimizer = make_optimizer(options);
  std::vector<Buffer> memory(optimizer->states().size() + 1);
  for (Buffer& buffer : memory) buffer = Buffer::host(Buffer::aligned(count * sizeof(float)));
  const auto at = [&](std::size_t i) { return reinterpret_cast<float*>(memory[i].data()); };
  std::ranges::copy(noise(count, 0, 0), at(0));
  OptimizerBindings bindings{.values = at(0),
                             .segments = {{"all", {Shape{static_cast<std::int64_t>(count)}, DType::float32, {}}}}};
  for (std::size_t i = 1; i < memory.size(); ++i) bindings.states.push_back(at(i));
  optimizer->bind(bindings);
  CpuStream stream;
  for (int step = 1; step <= steps; ++step) {
    const Numbers gradient = mean_noise(count, workers, step);
    const auto number = static_cast<std::uint64_t>(step);
    optimizer->step(ArenaRange{at(0), gradient.data(), count},
                    {.learning_rate = schedule.rate(number - 1), .step = number}, stream);
  }
  return {at(0), at(0) + count};
}

RANK_CASE("rounds of all workers give the bits of one optimizer with the mean gradient") {
  const std::size_t count = 2'503;
  const Schedule schedule({.name = "cosine", .learning_rate = 0.05, .total_steps = 25, .warmup_steps = 4});
  for (const int servers : {1, 2})
    for (const char* name : {"sgd", "momentum", "adamw"}) {
      if (servers >= ranks()) continue;
      const OptimizerOptions optimizer{.name = name, .weight_decay = 0.01};
      KeyValueStore store(test::world().communicator(), {.servers = servers, .part_bytes = 2048});
      store.set_updater(optimizer, schedule);
      const int workers = store.roles().workers();
      with_store(std::move(store), [&](KeyValueStore& mine) {
        Numbers values = noise(count, 0, 0);
        mine.init("values", values);
        for (int step = 1; step <= 20; ++step) {
          mine.push("values", noise(count, rank(), step));
          mine.pull("values", values);
        }
        CHECK(values == plain_training(count, optimizer, schedule, workers, 20));
      });
    }
}

RANK_CASE("an optimizer that needs whole parameters is refused, and an unknown one") {
  if (ranks() == 1) return;
  KeyValueStore store(test::world().communicator());
  const Schedule schedule({});
  for (const char* name : {"lars", "lamb", "muon"})
    CHECK(test::message_of<Error>([&] {
            store.set_updater({.name = name}, schedule);
          }).find("needs whole parameters") != std::string::npos);
  CHECK(test::message_of<Error>([&] { store.set_updater({.name = "sdg"}, schedule); }).find("sdg") !=
        std::string::npos);
  CHECK_FALSE(test::message_of<Error>([&] { store.set_updater(KeyValueUpdate()); }).empty());
  with_store(std::move(store), [](KeyValueStore&) {});
}

RANK_CASE("many pushes and pulls are under way at once") {
  if (ranks() == 1) return;
  const std::size_t keys =
      test::ranks_are_threads() ? 300 : 3000;  // threads buffer no messages: more in flight take long
  with_store(adding_store({.part_bytes = 64}), [&](KeyValueStore& store) {
    std::vector<Numbers> gradients(keys), values(keys);
    std::vector<KeyValueStore::Value> first;
    for (std::size_t i = 0; i < keys; ++i) {
      gradients[i].assign(i % 50, static_cast<float>(i % 97));
      values[i].resize(i % 50);
      first.push_back({std::to_string(i), values[i]});
    }
    store.init(first);
    for (int round = 1; round <= 3; ++round) {
      std::vector<KeyValueHandle> under_way;
      for (std::size_t i = 0; i < keys; ++i) under_way.push_back(store.start_push(std::to_string(i), gradients[i]));
      for (std::size_t i = keys; i-- > 0;) under_way.push_back(store.start_pull(std::to_string(i), values[i]));
      while (!under_way.front().done()) store.poll();
      for (const auto& handle : under_way) handle.wait();
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < keys; ++i)
        for (const float value : values[i]) wrong += value == static_cast<float>(round) * gradients[i][0] ? 0 : 1;
      CHECK(wrong == 0);
    }
  });
}

RANK_CASE("large gradients are under way while a worker does something else") {
  if (ranks() == 1) return;
  const std::size_t count = test::sanitized ? 300'001 : 3'000'001;
  const auto counted = with_store(adding_store({.servers = ranks() > 2 ? 2 : 1}), [&](KeyValueStore& store) {
    Numbers values(count), gradient(count, static_cast<float>(rank() + 1));
    store.init("values", values);
    float mean = 0;
    for (int worker = 0; worker < store.roles().workers(); ++worker) mean += static_cast<float>(worker + 1);
    mean *= 1 / static_cast<float>(store.roles().workers());
    for (int round = 1; round <= 4; ++round) {
      const auto pushed = store.start_push("values", gradient);
      const auto pulled = store.start_pull("values", values);
      pushed.wait();
      pulled.wait();
      CHECK(std::ranges::count(values, static_cast<float>(round) * mean) == static_cast<std::ptrdiff_t>(count));
    }
  });
  const Roles roles(ranks(), ranks() > 2 ? 2 : 1);
  if (!roles.is_server(rank())) CHECK(counted.received_bytes == 4 * count * sizeof(float));
}

RANK_CASE("of a round the slowest gradients are dropped and counted, and workers stop at the same update") {
  if (ranks() < 3) return;
  const std::uint64_t updates = 30;
  const int wanted = ranks() - 2;
  std::uint64_t pushes = 0;
  const auto counted = with_store(adding_store({.replicas_to_aggregate = wanted}), [&](KeyValueStore& store) {
    Numbers values(100);
    const Numbers ones(100, 1.0F);
    const auto step = [&] {
      store.push("values", ones);
      store.pull("values", values);
      ++pushes;
    };
    store.init("values", values);
    if (rank() != 0) step();
    store.barrier();
    if (rank() == 0) step();  // after the first round
    CHECK(store.statistics().dropped == (rank() == 0 ? 1 : 0));
    while (store.version("values") < updates) step();
    CHECK(values == Numbers(100, static_cast<float>(updates)));
  });
  const auto all_pushes = by_rank(pushes), all_dropped = by_rank(counted.dropped);
  const std::uint64_t dropped = std::accumulate(all_dropped.begin(), all_dropped.end() - 1, std::uint64_t{0});
  CHECK(all_dropped.back() == dropped);  // the server's
  CHECK(std::accumulate(all_pushes.begin(), all_pushes.end(), std::uint64_t{0}) ==
        updates * static_cast<std::uint64_t>(wanted) + dropped);
  if (rank() == ranks() - 1) CHECK(counted.updates == updates);
}

TEST_CASE("asynchronous pushes are all applied, and their ages counted") {
  const auto bound =
      GENERATE(std::optional<std::uint64_t>(), std::optional<std::uint64_t>(0), std::optional<std::uint64_t>(3));
  test::on_ranks([&] {
    if (ranks() == 1) return;
    const int workers = ranks() - 1, pushes = 50;
    const auto counted =
        with_store(adding_store({.asynchronous = true, .max_staleness = bound}), [&](KeyValueStore& store) {
          Numbers values(1000);
          const Numbers ones(1000, 1.0F);
          store.init("values", values);
          for (int i = 0; i < pushes; ++i) {
            store.pull("values", values);
            CHECK(std::ranges::count(values, values[0]) == 1000);
            store.push("values", ones);
          }
          store.barrier();
          store.pull("values", values);
          CHECK(values == Numbers(1000, static_cast<float>(workers * pushes)));
          CHECK(store.version("values") == static_cast<std::uint64_t>(workers * pushes));
        });
    if (rank() < workers) return;
    std::uint64_t all = 0;
    for (const std::uint64_t count : counted.staleness) all += count;
    CHECK(all == static_cast<std::uint64_t>(workers * pushes));
    CHECK(counted.updates == all);
    if (bound) CHECK(counted.staleness.size() <= static_cast<std::size_t>(workers - 1) * (2 * *bound + 1) + 1);
  });
}

RANK_CASE("a wrong use gives one clear message, and the store goes on") {
  if (ranks() == 1) return;
  KeyValueStore opened = adding_store({});
  Numbers three(3);
  if (opened.is_server())
    CHECK(test::message_of<Error>([&] { opened.push("values", three); }) ==
          "push is for workers; rank " + std::to_string(rank()) +
              " is a server of the key-value store, and calls serve");
  else
    CHECK(test::message_of<Error>([&] { opened.serve(); }) ==
          "serve is for servers; rank " + std::to_string(rank()) + " is a worker of the key-value store");
  with_store(std::move(opened), [&](KeyValueStore& store) {
    CHECK(test::message_of<Error>([&] { store.push("values", three); }) ==
          "push of 'values', which the key-value store does not have: init it first");
    store.init("values", three);
    CHECK(test::message_of<Error>([&] { store.pull("value", three); }) ==
          "pull of 'value', which the key-value store does not have: init it first");
    CHECK(test::message_of<Error>([&] {
            store.push("values", std::array{1.0F, 2.0F});
          }) == "push of 'values' with 2 numbers; it was initialised with 3");
    CHECK(test::message_of<Error>([&] { store.init("values", three); }) ==
          "init of 'values', which is in the key-value store already");
    store.push("values", Numbers{1, 2, 3});
    store.pull("values", three);
    CHECK(three == Numbers{1, 2, 3});
    store.barrier();
  });
  KeyValueStore closed = adding_store({});
  if (closed.is_server()) {
    closed.serve();
    closed.serve();  // nobody is left to wait for
    return;
  }
  closed.close();
  CHECK(test::message_of<Error>([&] { closed.pull("values", three); }) == "the key-value store is closed");
}

RANK_CASE("workers that initialise different sizes are told so, and the servers too") {
  if (ranks() < 3) return;
  const std::string why = test::message_of<Error>(
      [&] { with_store({}, [&](KeyValueStore& store) { store.init("values", Numbers(rank() == 0 ? 3 : 4)); }); });
  if (rank() == ranks() - 1)
    CHECK(why.find(" left the key-value store: ") != std::string::npos);
  else
    CHECK(why.find("'values', 4 numbers") != std::string::npos);
}

RANK_CASE("a key that looks like two is told from two") {
  if (ranks() < 3) return;
  const Numbers four(4);
  const std::string why = test::message_of<Error>([&] {
    with_store({}, [&](KeyValueStore& store) {
      if (rank() == 0)
        store.init("k', 4 numbers\n'l", four);
      else
        store.init(std::array{KeyValueStore::Value{"k", four}, KeyValueStore::Value{"l", four}});
    });
  });
  CHECK(why.find(rank() == ranks() - 1 ? " left the key-value store: " : "the values of a key-value store") !=
        std::string::npos);
}

RANK_CASE("an init that one worker may not make is refused on all, and the store goes on") {
  if (ranks() < 3) return;
  with_store({}, [&](KeyValueStore& store) {
    Numbers values(3, 1.0F);
    store.init("values", values);
    const std::string why = test::message_of<Error>([&] { store.init(rank() == 0 ? "values" : "more", values); });
    CHECK(why.ends_with("init of 'values', which is in the key-value store already"));
    store.init("more", values);
    store.pull("more", values);
  });
}

/// An update that cannot be copied once it is locked, as where memory runs out.
class Lockable {
 public:
  explicit Lockable(std::shared_ptr<const bool> locked) : locked_(std::move(locked)) {}
  Lockable(const Lockable& other) : locked_(other.locked_) {
    if (*locked_) throw ResourceError("no memory for this part");
  }
  Lockable(Lockable&&) noexcept = default;
  Lockable& operator=(const Lockable&) = delete;
  Lockable& operator=(Lockable&&) = delete;
  ~Lockable() = default;
  void operator()(const KeyPart& /*part*/, std::uint64_t /*update*/, std::span<float> /*values*/,
                  std::span<const float> /*gradient*/) const {}

 private:
  std::shared_ptr<const bool> locked_;
};

RANK_CASE("where a server cannot make a part, init fails on all workers with its message, and the server") {
  if (ranks() == 1) return;
  const auto locked = std::make_shared<bool>(false);
  KeyValueStore store(test::world().communicator(), {.servers = ranks() > 2 ? 2 : 1, .part_bytes = 64});
  store.set_updater(Lockable(locked));
  *locked = true;
  const std::string why = test::message_of<Error>(
      [&] { with_store(std::move(store), [&](KeyValueStore& mine) { mine.init("values", Numbers(1000)); }); });
  CHECK(why.ends_with("no memory for this part"));
  static_cast<void>(test::world().communicator().gather_texts("the world goes on"));
}

TEST_CASE("a worker that leaves without closing fails what the others wait for") {
  const bool in_barrier = GENERATE(false, true);
  test::on_ranks([&] {
    if (ranks() < 3) return;
    Numbers values(100'000);  // in use until the store is gone
    const std::string why = test::message_of<Error>([&] {
      with_store({}, [&](KeyValueStore& store) {
        store.init("values", values);
        const auto pulled = store.start_pull("values", values);
        if (rank() == 0) throw LogicError("an error of the worker's own");
        if (in_barrier) store.barrier();
        store.push("values", values);
        store.pull("values", values);
      });
    });
    const std::string left = "worker 0 left the key-value store: it did not close it";
    if (rank() == 0)
      CHECK(why == "an error of the worker's own");
    else
      CHECK(why == left);
    static_cast<void>(test::world().communicator().gather_texts("the world goes on"));
  });
}

TEST_CASE("what a worker throws out of `run` the others hear") {
  const bool before_init = GENERATE(false, true);
  test::on_ranks([&] {
    if (ranks() < 3) return;
    Numbers values(10);
    KeyValueStore store = adding_store({});
    const std::string why = test::message_of<Error>([&] {
      store.run([&] {
        if (rank() == 1 && before_init) throw InputError("this worker has no data");
        store.init("values", values);
        if (rank() == 1) throw InputError("this worker has no data");
        store.push("values", values);
        store.pull("values", values);
      });
    });
    CHECK(why == (rank() == 1 ? "" : "worker 1 left the key-value store: ") + std::string("this worker has no data"));
  });
}

RANK_CASE("what is no exception is heard too, where a worker throws it out of `run`") {
  if (ranks() < 3) return;
  Numbers values(10);
  KeyValueStore store = adding_store({});
  bool thrown = false;
  std::string why;
  try {
    why = test::message_of<Error>([&] {
      store.run([&] {
        store.init("values", values);
        if (rank() == 1) throw 42;
        store.push("values", values);
        store.pull("values", values);
      });
    });
  } catch (const int&) {
    thrown = true;
  }
  CHECK(thrown == (rank() == 1));
  if (rank() != 1) CHECK(why.find("worker 1 left the key-value store: ") == 0);
  static_cast<void>(test::world().communicator().gather_texts("the world goes on"));
}

RANK_CASE("a worker that throws with large pushes and pulls under way is heard") {
  if (ranks() < 3) return;
  const std::size_t count = 500'003;
  Numbers gradient(count, 1.0F), out(count);  // in use until the store is gone
  KeyValueStore store = adding_store({});
  const std::string why = test::message_of<Error>([&] {
    store.run([&] {
      store.init("values", gradient);
      const auto pushed = store.start_push("values", gradient);
      const auto pulled = store.start_pull("values", out);
      store.poll();
      if (rank() == 0) throw InputError("this worker has no data");
      pushed.wait();
      pulled.wait();
      store.barrier();
    });
  });
  CHECK(why == (rank() == 0 ? "" : "worker 0 left the key-value store: ") + std::string("this worker has no data"));
  static_cast<void>(test::world().communicator().gather_texts("the world goes on"));
}

TEST_CASE("an update that throws fails all workers, with its message, and the server") {
  const bool asynchronous = GENERATE(false, true);
  test::on_ranks([&] {
    if (ranks() == 1) return;
    KeyValueStore store(test::world().communicator(), {.asynchronous = asynchronous});
    store.set_updater([](const KeyPart& part, std::uint64_t update, std::span<float>, std::span<const float>) {
      if (update == 2) throw InputError("no third update of " + part.key);
    });
    const std::string why = test::message_of<Error>([&] {
      with_store(std::move(store), [&](KeyValueStore& mine) {
        Numbers values(10);
        mine.init("values", values);
        for (int i = 0; i < 5; ++i) {
          mine.push("values", values);
          mine.pull("values", values);
        }
      });
    });
    CHECK(why == "no third update of values");
  });
}

/// Two workers and one server: worker 0 uses only the key 'a', worker 1 only 'b', until they fail. Returns this rank's
/// error.
std::string of_other_keys(const KeyValueOptions& options, bool pulls) {
  KeyValueOptions given = options;
  given.servers = ranks() - 2;
  Numbers values(10);
  return test::message_of<Error>([&] {
    with_store(adding_store(given), [&](KeyValueStore& store) {
      store.init("a", values);
      store.init("b", values);
      for (;;) {
        store.push(rank() == 0 ? "a" : "b", values);
        if (pulls) store.pull(rank() == 0 ? "a" : "b", values);
      }
    });
  });
}

RANK_CASE("workers that all wait for each other at a server get an error that names them and the keys") {
  if (ranks() != 3) return;
  test::require_mentions(of_other_keys({}, true),
                         {"worker 0 pulls 'a'", "worker 1 has not pushed it", "worker 1 pulls 'b'"});
  test::require_mentions(of_other_keys({.ahead_bytes = 100}, false), {"120 bytes", ".ahead_bytes = 100"});
  test::require_mentions(of_other_keys({.asynchronous = true, .max_staleness = 2}, false),
                         {"worker 0 has pushed 'a' 3 times, and worker 1 0 times", ".max_staleness = 2"});
  static_cast<void>(test::world().communicator().gather_texts("the world goes on"));
}

RANK_CASE("a worker that pushes far ahead of a slow one is held up, and all is applied") {
  if (ranks() < 3) return;
  constexpr int pushes = 50;
  Numbers values(1000);
  with_store(adding_store({.ahead_bytes = 10'000}), [&](KeyValueStore& store) {
    store.init("values", values);
    const Numbers gradient(values.size(), 1.0F);
    std::vector<KeyValueHandle> begun;
    for (int push = 0; push < pushes; ++push) {
      begun.push_back(store.start_push("values", gradient));
      if (rank() == 0) store.poll();
      if (rank() != 0) begun.back().wait();
      if (rank() != 0) store.pull("values", values);
    }
    for (const KeyValueHandle& handle : begun) handle.wait();
    store.pull("values", values);
    CHECK(values == Numbers(values.size(), static_cast<float>(pushes)));
  });
}

RANK_CASE("two stores of one world do not mix up their messages, nor the caller's") {
  if (ranks() == 1) return;
  Communicator all = test::world().communicator();
  for (int turn = 0; turn < 3; ++turn) {
    with_store(adding_store({}), [&](KeyValueStore& store) {
      Numbers values{static_cast<float>(turn)};
      store.init("values", values);
      store.push("values", Numbers{1});
      store.pull("values", values);
      CHECK(values[0] == static_cast<float>(turn + 1));
    });
    Numbers sum{1};
    all.allreduce(Tensor(std::span(sum)));
    CHECK(sum[0] == static_cast<float>(ranks()));
  }
}

}  // namespace
}  // namespace ronda
