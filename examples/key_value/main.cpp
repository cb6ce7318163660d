// Softmax regression on MNIST with a parameter server: the last rank keeps the weights, the others compute gradients.
//
//     mpirun -n 4 key_value DATA rounds|backup|asynchronous UPDATES [MILLISECONDS [FACTOR]]
//
// A step of a worker takes so many milliseconds more, and so many times that on worker 0: a slow one to try it with.
#include <ronda/ronda.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <iostream>
#include <random>
#include <string>
#include <thread>

using namespace ronda;

constexpr std::size_t pixels = 28 * 28, classes = 10, batch = 50;

/// Scores of the ten digits: a weight for each pixel and digit, then the digits' biases.
std::array<float, classes> scores(const std::vector<float>& weights, const std::uint8_t* image) {
  std::array<float, classes> result;
  std::copy_n(&weights[pixels * classes], classes, result.begin());
  for (std::size_t p = 0; p < pixels; ++p)
    if (image[p] > 0)
      for (std::size_t c = 0; c < classes; ++c)
        result[c] += static_cast<float>(image[p]) / 255 * weights[p * classes + c];
  return result;
}

/// Adds a sample's gradient of the cross entropy, over `batch`.
void add_gradient(const std::vector<float>& weights, const std::uint8_t* image, std::size_t label,
                  std::vector<float>& gradient) {
  auto p = scores(weights, image);
  const float most = *std::ranges::max_element(p);
  float sum = 0;
  for (float& x : p) sum += x = std::exp(x - most);
  for (float& x : p) x /= sum * batch;
  p[label] -= 1.0F / batch;
  for (std::size_t i = 0; i < pixels; ++i)
    if (image[i] > 0)
      for (std::size_t c = 0; c < classes; ++c) gradient[i * classes + c] += static_cast<float>(image[i]) / 255 * p[c];
  for (std::size_t c = 0; c < classes; ++c) gradient[pixels * classes + c] += p[c];
}

double accuracy(const std::vector<float>& weights, const MnistFiles& data) {
  std::size_t right = 0;
  const std::size_t samples = data.test_labels.values().size();
  for (std::size_t i = 0; i < samples; ++i) {
    const auto s = scores(weights, &data.test_images.values()[i * pixels]);
    right += std::ranges::max_element(s) - s.begin() == data.test_labels.values()[i] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(samples);
}

/// Trains until the weights have been updated so often.
void work(KeyValueStore& store, const MnistFiles& data, std::uint64_t updates, std::chrono::duration<double> delay) {
  std::vector<float> weights((pixels + 1) * classes), gradient(weights.size());
  store.init("weights", weights);  // the same zeros on all workers
  std::mt19937 random(static_cast<unsigned>(store.rank()));
  std::uniform_int_distribution<std::size_t> sample(0, data.train_labels.values().size() - 1);
  std::size_t steps = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (; store.version("weights") < updates; ++steps) {
    std::ranges::fill(gradient, 0.0F);
    for (std::size_t n = 0; n < batch; ++n) {
      const std::size_t i = sample(random);
      add_gradient(weights, &data.train_images.values()[i * pixels], data.train_labels.values()[i], gradient);
    }
    std::this_thread::sleep_for(delay);
    store.push("weights", gradient);
    store.pull("weights", weights);
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  std::cout << "worker " + std::to_string(store.rank()) + ": " + std::to_string(steps) + " gradients in " +
                   std::to_string(time.count()) + " s, " + std::to_string(store.statistics().dropped) +
                   " came too late\n";
  store.barrier();
  if (store.rank() == 0) std::cout << "test accuracy " << 100 * accuracy(weights, data) << " %\n";
}

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: key_value DATA rounds|backup|asynchronous UPDATES [MILLISECONDS [FACTOR]]\n";
    return 2;
  }
  return launch(argc, argv, [&](World& world) {
    const std::string mode = argv[2];
    KeyValueOptions options{.asynchronous = mode == "asynchronous"};
    if (mode == "backup") options.replicas_to_aggregate = world.size() - 2;  // one worker's gradient less
    KeyValueStore store(world.communicator(), options);
    store.set_updater({.name = "sgd"}, Schedule({.learning_rate = 0.2}));
    const double delay = argc > 4 ? std::stod(argv[4]) / 1000 : 0, factor = argc > 5 ? std::stod(argv[5]) : 4;
    store.run([&] {
      work(store, read_mnist(argv[1]), std::stoull(argv[3]),
           std::chrono::duration<double>(store.rank() == 0 ? delay * factor : delay));
    });
    if (store.is_server() && options.asynchronous) {
      std::cout << "gradients by their age in updates:";
      for (const std::uint64_t count : store.statistics().staleness) std::cout << " " << count;
      std::cout << "\n";
    }
    return 0;
  });
}
