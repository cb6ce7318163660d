// given_up HOW: a program with an MPI of its own, whose second rank is late for a collective that the first one gives
// up. Whatever comes later must find nothing of it: no posted receive, no memory, no step that a rank takes for its
// own.
#include <ronda/collectives/mpi_world.hpp>
#include <ronda/core/error.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ronda;

constexpr int filling = 7;

bool holds(bool condition, const std::string& what) {
  if (!condition) std::printf("FAILED: expected %s\n", what.c_str());
  return condition;
}

/// Memory that can be taken away, and is never moved.
class Pages {
 public:
  explicit Pages(std::size_t count)
      : count_(count),
        numbers_(static_cast<int*>(
            ::mmap(nullptr, count * sizeof(int), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    std::fill_n(numbers_, count_, 1);
  }
  Pages(const Pages&) = delete;
  ~Pages() { unmap(); }
  void unmap() {
    if (numbers_ != nullptr) ::munmap(numbers_, count_ * sizeof(int));
    numbers_ = nullptr;
  }
  /// The same addresses belong to somebody else from now on.
  void use_again() { std::fill_n(numbers_, count_, filling); }
  [[nodiscard]] std::size_t overwritten() const {
    return static_cast<std::size_t>(std::count_if(numbers_, numbers_ + count_, [](int n) { return n != filling; }));
  }
  [[nodiscard]] Tensor tensor() const { return Tensor(std::span(numbers_, count_)); }

 private:
  std::size_t count_;
  int* numbers_;
};

/// What `work` was refused with; empty where it was not.
template <class Work>
std::string refusal(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void run(const std::unique_ptr<Collective>& collective) { collective->start().wait(); }

void wait_for_the_other(int seconds) { std::this_thread::sleep_for(std::chrono::seconds(seconds)); }

/// Both ranks talk to each other long enough for everything to come that is on its way.
void let_everything_come() {
  for (int i = 0; i < 200; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

World adopt() {
  return World::adopt(MPI_COMM_WORLD,
                      {.progress = Progress::inline_, .communication_timeout = 1, .on_stall = [](const Stall&) {}});
}

/// @param unmaps  the memory goes; else it is used for something else
/// @param plan    the two ranks' collective over some memory
template <class Plan>
bool late_rank(std::size_t count, bool unmaps, Plan&& plan) {
  bool good = true;
  Pages pages(count);
  {
    const World world = adopt();
    Communicator all = world.communicator();
    auto collective = plan(all, pages.tensor());
    if (all.rank() == 1) wait_for_the_other(4);
    const std::string why = refusal([&] { run(collective); });
    good &= holds(!why.empty(), "an error on rank " + std::to_string(all.rank()));
    collective.reset();
    if (unmaps)
      pages.unmap();
    else
      pages.use_again();
    const std::string again = refusal([&] { all.barrier(); });
    good &= holds(!again.empty(), "an error of what comes after on rank " + std::to_string(all.rank()));
    let_everything_come();
  }
  let_everything_come();
  return good & holds(unmaps || pages.overwritten() == 0,
                      "nothing overwritten, not " + std::to_string(unmaps ? 0 : pages.overwritten()) + " numbers");
}

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// Dropped before a message has come: its receives are taken back, and its memory with them.
bool many_dropped() {
  const World world = adopt();
  Communicator all = world.communicator();
  constexpr std::size_t count = std::size_t{1} << 20;
  const Pages pages(count);
  std::size_t before = 0;
  for (int i = 0; i < 200; ++i) {
    auto reduction = all.plan(ReduceSpec{pages.tensor()});
    auto tree = all.plan(BroadcastSpec{pages.tensor(), 1});
    if (all.rank() == 0) static_cast<void>(tree->start());
    if (i == 10) before = resident_bytes();
  }
  const std::size_t grown = std::max(resident_bytes(), before) - before;
  all.barrier();
  return holds(grown < (std::size_t{60} << 20), "no growth, not " + std::to_string(grown >> 20) + " MiB");
}

/// What is in flight and cannot be taken back ends the world, once, by name; nothing grows.
bool dropped_sends() {
  const World world = adopt();
  Communicator all = world.communicator();
  const Pages pages(std::size_t{1} << 20);
  std::vector<std::unique_ptr<Collective>> planned;
  for (int i = 0; i < 200; ++i)
    planned.push_back(all.plan(
        AllreduceSpec{{pages.tensor()}, ReduceOp::sum, AllreduceAlgorithm::halving, "bucket " + std::to_string(i)}));
  const std::size_t before = resident_bytes();
  std::string why;
  if (all.rank() == 0)
    for (auto& reduction : planned) {
      why = refusal([&] { static_cast<void>(reduction->start()); });
      reduction.reset();
    }
  else
    wait_for_the_other(2);
  planned.clear();
  const std::size_t now = resident_bytes(), grown = std::max(now, before) - before;
  bool good = holds(grown < (std::size_t{100} << 20), "no growth, not " + std::to_string(grown >> 20) + " MiB");
  good &= holds(all.rank() != 0 || why.find("bucket 0") != std::string::npos, "bucket 0 named, not: " + why);
  return good & holds(!refusal([&] { all.barrier(); }).empty(), "an error afterwards");
}

/// A receive that was dropped before anything came took no message.
bool next_message_arrives() {
  const World world = adopt();
  Communicator all = world.communicator();
  std::vector<int> never(1000), numbers(1000, all.rank() == 1 ? 5 : 0);
  if (all.rank() == 0) {
    auto dropped = all.plan(ReceiveSpec{Tensor(std::span(never)), 1});
    static_cast<void>(dropped->start());
    dropped.reset();
  }
  all.barrier();
  if (all.rank() == 1)
    all.send(Tensor(std::span(numbers)), 0);
  else
    all.receive(Tensor(std::span(numbers)), 1);
  return holds(numbers.back() == 5 && numbers.front() == 5, "the message") &
         holds(never.back() == 0, "nothing in the dropped one");
}

bool attack(const std::string& how) {
  const auto allreduce = [&](Communicator& all, const Tensor& tensor) {
    return all.plan(AllreduceSpec{{tensor}, ReduceOp::sum, parse_allreduce(how), "the late one"});
  };
  const auto message = [](int sender) {
    return [sender](Communicator& all, const Tensor& tensor) {
      return all.rank() == sender ? all.plan(SendSpec{tensor, 1 - sender})
                                  : all.plan(ReceiveSpec{tensor, 1 - all.rank()});
    };
  };
  if (how == "receive") return late_rank(4000, false, message(1));
  if (how == "receive-long") return late_rank(std::size_t{1} << 20, true, message(1));
  if (how == "send") return late_rank(std::size_t{1} << 20, true, message(0));
  if (how == "dropped") return many_dropped();
  if (how == "dropped-sends") return dropped_sends();
  if (how == "next") return next_message_arrives();
  // An allreduce: of short messages, which MPI buffers, of long ones, and with memory that is gone.
  if (how == "doubling") return late_rank(2000, false, allreduce);
  if (how == "mpi") return late_rank(std::size_t{1} << 16, true, allreduce);
  return late_rank(std::size_t{1} << 20, how == "halving", allreduce);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int good = attack(argc > 1 ? argv[1] : "") ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  MPI_Finalize();
  return good != 0 ? 0 : 1;
}
