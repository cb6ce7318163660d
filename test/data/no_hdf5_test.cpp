// A build without HDF5.
#include <ronda/core/error.hpp>
#include <ronda/data/hdf5.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"

using namespace ronda;
using namespace ronda::test;

TEST_CASE("a build without HDF5 says so, and what to install") {
  require_mentions(message_of<InputError>([&] {
                     (void)open_hdf5("set.h5", {{"input", "x"}});
                   }),
                   {"set.h5", "lacks HDF5", "libhdf5-dev"});
  require_mentions(message_of<InputError>([&] {
                     Hdf5Writer("set.h5", {{"input", Shape{1}}});
                   }),
                   {"lacks HDF5", "libhdf5-dev"});
}
