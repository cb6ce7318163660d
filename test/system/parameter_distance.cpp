// parameter_distance A B: how far B's parameters are from A's, as a part of A's norm: |b - a| / |a| over all tensors.
#include <ronda/core/error.hpp>
#include <ronda/runtime/io/safetensors.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

namespace {

double distance(ronda::Safetensors a, ronda::Safetensors b) {
  for (auto* file : {&a, &b}) std::ranges::sort(file->tensors, {}, &ronda::NamedTensor::name);
  if (a.tensors.size() != b.tensors.size()) throw ronda::InputError("the files have different numbers of tensors");
  double difference = 0, norm = 0;
  for (std::size_t t = 0; t < a.tensors.size(); ++t) {
    const auto &x = a.tensors[t], &y = b.tensors[t];
    if (x.name != y.name || x.shape != y.shape)
      throw ronda::InputError(x.name + " " + x.shape.text() + " stands beside " + y.name + " " + y.shape.text());
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      difference += std::pow(static_cast<double>(y.values[i]) - x.values[i], 2);
      norm += std::pow(x.values[i], 2);
    }
  }
  return std::sqrt(difference / norm);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    std::printf("%.3g\n", distance(ronda::read_safetensors(argv[1]), ronda::read_safetensors(argv[2])));
    return 0;
  } catch (const ronda::Error& error) {
    std::cerr << "ronda: error: " << error.what() << '\n';
    return 2;
  }
}
