#include <ronda/core/error.hpp>
#include <ronda/runtime/key_value/key_value_roles.hpp>

#include <string>

namespace ronda {

KeyValueRoles::KeyValueRoles(int ranks, int servers) : ranks_(ranks), servers_(servers) {
  const std::string given =
      ".servers = " + std::to_string(servers) + " of " + std::to_string(ranks) + (ranks == 1 ? " rank: " : " ranks: ");
  if (servers < 1) throw InputError(given + "values need one server or more");
  if (servers >= ranks)
    throw InputError(given + "no rank is left as a worker; take fewer servers, or start " +
                     std::to_string(servers + 1) + " ranks or more");
}

}  // namespace ronda
