#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/strategy/easgd/easgd.hpp>

#include <string>

namespace ronda {

void check(const Easgd& o, int ranks) {
  if (o.communicate_every == 0) throw InputError(setting("communicate_every") + " is at least 1");
  if (!(o.rate(ranks) > 0 && o.rate(ranks) * ranks <= 1))
    throw InputError(setting("moving_rate") + " is a number above 0 and at most 1 / ranks, here " +
                     shortest(1.0 / ranks) + ", not " + shortest(o.rate(ranks)));
}

void check(const Easgd& o, const Demands& demands) {
  check(o, 1);
  refuse_audits(demands, Easgd::name, "replicas differ, and each checkpoint makes them equal, errors too");
  refuse_unequal_shares(demands, setting("strategy", Easgd::name), "all ranks move the center alike");
  if (demands.compression != Compression::none)
    throw InputError(setting("compression") + " is of gradients, and " + setting("strategy", Easgd::name) +
                     " sends none; leave it out");
  if (demands.exact && demands.timed_saves)
    throw InputError(setting("exact") + " promises equal bits, and with " + setting("strategy", Easgd::name) +
                     ", whose ranks take the center for each checkpoint, they depend on when these come; give " +
                     setting("checkpoint_every") + " a number of steps");
}

}  // namespace ronda
