// stall_program HOW[:ALGORITHM[:PROGRESS]]: a job whose last rank does not do as the others, in the way that HOW says.
// What is to come of it stands in CMakeLists.txt; check_launch.sh looks.
#include <ronda/collectives/launch.hpp>
#include <ronda/collectives/phase.hpp>
#include <ronda/core/error.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ronda;

struct Wish {
  std::string how, algorithm = "auto", progress = "auto";

  static Wish parse(const std::string& text) {
    Wish wish;
    std::istringstream parts(text);
    for (std::string* part : {&wish.how, &wish.algorithm, &wish.progress}) {
      std::string given;
      if (std::getline(parts, given, ':')) *part = given;
    }
    return wish;
  }
};

void sleep_long() { std::this_thread::sleep_for(std::chrono::minutes(1)); }

/// Three allreduces in each of three steps; in the second step the odd one does otherwise.
void train(Communicator communicator, const Wish& wish, bool odd) {
  const auto bytes = std::size_t{4096};
  std::vector<Buffer> memory;
  std::vector<std::unique_ptr<Collective>> buckets;
  for (int i = 0; i < 3; ++i) {
    memory.push_back(communicator.allocate(bytes, Memory::node_shared));
    const std::span numbers(reinterpret_cast<float*>(memory.back().data()), bytes / sizeof(float));
    const auto label = "bucket " + std::to_string(i);
    buckets.push_back(
        communicator.plan(AllreduceSpec{{Tensor(numbers)}, ReduceOp::sum, parse_allreduce(wish.algorithm), label}));
  }
  for (std::uint64_t step = 1; step <= 3; ++step) {
    communicator.set_step(step);
    const bool now = odd && step == 2;
    std::vector<Event> done;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      if (step == 2 && i == 1) done.front().wait();
      if (now && i == 1 && wish.how == "late") sleep_long();
      if (now && i == 1 && wish.how == "stop") raise(SIGSTOP);
      if (now && i == 1 && wish.how == "kill") raise(SIGKILL);
      if (now && i == 1 && wish.how == "skip") continue;
      if (now && i == 1 && wish.how == "leave") return;
      done.push_back(buckets[i]->start());
    }
    for (const Event& event : done) event.wait();
  }
}

void write(const Communicator& communicator, const Wish& wish, bool odd) {
  Communicator all = communicator;
  if (odd) {
    const Phase phase(all, Activity::writing, wish.how == "writes-too-long" ? 2 : 60);
    if (wish.how == "stops-writing") raise(SIGSTOP);
    std::this_thread::sleep_for(std::chrono::seconds(wish.how == "writes" ? 3 : 60));
  }
  all.barrier();
}

/// The ranks but the second, which have other numbers in their group than in the world, reduce; the last is late.
void train_in_part(const Communicator& communicator, bool odd) {
  const bool outside = communicator.rank() == 1;
  Communicator part = communicator.split(outside ? 1 : 0, 0);
  std::vector<float> numbers(100'000);
  const auto reduction = part.plan(
      AllreduceSpec{{Tensor(std::span(numbers))}, ReduceOp::sum, AllreduceAlgorithm::ring, "bucket of a part"});
  if (odd || outside) sleep_long();
  reduction->start().wait();
}

int run(World& world, const Wish& wish) {
  const bool odd = world.rank() + 1 == world.size();
  Communicator communicator = world.communicator();
  if (wish.how.find("writ") != std::string::npos)
    write(communicator, wish, odd);
  else if (wish.how == "barrier") {
    if (odd) sleep_long();
    communicator.barrier();
  } else if (wish.how == "part") {
    train_in_part(communicator, odd);
  } else if (wish.how == "plan") {
    if (odd) raise(SIGSTOP);
    static_cast<void>(communicator.allocate(4096, Memory::node_shared));
  } else if (wish.how == "shape") {  // for once, without a plan
    std::vector<float> numbers(odd ? 5 : 4);
    communicator.allreduce(Tensor(std::span(numbers)));
  } else if (wish.how == "send") {  // all of them first
    std::vector<float> numbers(1 << 20);
    communicator.send(Tensor(std::span(numbers)), (world.rank() + 1) % world.size());
  } else if (wish.how == "withdrawn") {  // what nobody waits in any more
    std::vector<float> numbers(4);
    auto never = communicator.plan(ReceiveSpec{Tensor(std::span(numbers)), (world.rank() + 1) % world.size()});
    never->start();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    never.reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  } else if (wish.how == "planned-shape") {
    std::vector<float> numbers(odd ? 5 : 4);
    static_cast<void>(communicator.plan(AllreduceSpec{{Tensor(std::span(numbers))}, ReduceOp::sum, {}, "bucket 5"}));
  } else {
    train(communicator, wish, odd);
  }
  if (world.rank() == 0) std::cout << "done\n";
  return 0;
}

bool is_last(const char* rank, const char* size) {
  const char* mine = std::getenv(rank);
  const char* all = std::getenv(size);
  return mine != nullptr && all != nullptr && std::atoi(mine) + 1 == std::atoi(all);
}

/// One a rank; who starts this program removes them.
std::string own_folder() {
  const char* folder = std::getenv("RONDA_TEST_FOLDER");
  if (folder == nullptr) throw InputError("RONDA_TEST_FOLDER names no folder for records");
  return std::string(folder) + "/" + std::to_string(::getpid());
}

}  // namespace

int main(int argc, char** argv) {
  const Wish wish = Wish::parse(argc > 1 ? argv[1] : "");
  const bool odd = is_last("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE") || is_last("PMI_RANK", "PMI_SIZE");
  return launch(
      argc, argv,
      [&](WorldOptions& options) {
        options.communication_timeout = 0.5;
        options.progress = parse_progress(wish.progress);
        if (wish.how == "one-threaded" && !odd) options.progress = Progress::inline_;
        if (wish.how == "one-refuses" && odd) throw InputError("no such file");
        if (wish.how == "throws") options.on_stall = [](const Stall&) {};  // then what waits in a collective fails
        if (wish.how == "start" && odd) sleep_long();
        if (wish.how == "starts-late" && odd) std::this_thread::sleep_for(std::chrono::milliseconds(4500));
        if (wish.how == "late-apart") options.trace = own_folder();
        return true;
      },
      [&](World& world) {
        const bool late = wish.how == "throws" || wish.how == "late-apart";
        return run(world, late ? Wish{"late", wish.algorithm, wish.progress} : wish);
      });
}
