#pragma once
#include <iostream>
#include <set>
#include <string>

#include <ronda/collectives/world.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/image_folder.hpp>

namespace ronda::apps {

/// Warns of the pictures that were left out because they were damaged: those of all ranks, each of which knows what it
/// has read itself. Collective.
inline void tell_damaged(const World& world, const ImageFolder& pictures) {
  TextWriter mine;
  for (const std::uint64_t sample : pictures.damaged()) mine << sample << " ";
  std::set<std::uint64_t> all;
  for (const std::string& samples : world.communicator().gather_texts(mine.str())) {
    TextReader numbers(samples);
    for (std::uint64_t sample = 0; numbers >> sample;) all.insert(sample);
  }
  if (world.rank() != 0 || all.empty()) return;
  std::cerr << "ronda: warning: damaged pictures were left out: " << all.size() << ", the first is "
            << pictures.path(*all.begin()).string() << std::endl;
}

}  // namespace ronda::apps
