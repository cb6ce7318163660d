#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/key_value/detail/server.hpp>
#include <ronda/runtime/key_value/detail/worker.hpp>
#include <ronda/runtime/key_value/key_value_store.hpp>

#include <array>
#include <utility>

namespace ronda {
namespace {

/// Sums and copies are made of whole lines of the cache.
constexpr std::size_t part_unit = 64;

std::string text_of_options(const KeyValueOptions& options) {
  std::string servers = std::to_string(options.servers);
  for (const int rank : options.server_ranks) servers += ", rank " + std::to_string(rank);
  return "servers " + servers + "\nasynchronous " + std::to_string(options.asynchronous) + "\nreplicas_to_aggregate " +
         std::to_string(options.replicas_to_aggregate) + "\nmax_staleness " +
         (options.max_staleness ? std::to_string(*options.max_staleness) : "none") + "\npart_bytes " +
         std::to_string(options.part_bytes) + "\nahead_bytes " + std::to_string(options.ahead_bytes);
}

/// A group of its own, so that its messages and the caller's are not mixed up.
Communicator group_for(const Communicator& communicator, const KeyValueOptions& options) {
  require_equal(communicator, "the options of the key-value store", text_of_options(options));
  try {
    require_sense(options, communicator.size());
  } catch (const InputError& error) {  // on all ranks
    throw as_agreed(error);
  }
  return communicator.split(0, communicator.rank());
}

}  // namespace

Roles roles_of(const KeyValueOptions& options, int ranks) {
  return options.server_ranks.empty() ? Roles(ranks, options.servers) : Roles::of_servers(ranks, options.server_ranks);
}

void require_sense(const KeyValueOptions& options, int ranks) {
  const Roles roles = roles_of(options, ranks);
  require_sense(options);
  const int wanted = options.replicas_to_aggregate;
  if (wanted > roles.workers())
    throw InputError(setting("replicas_to_aggregate", wanted) + " is more than " + counted(roles.workers(), "worker") +
                     "; 0 takes the gradients of all");
}

void require_sense(const KeyValueOptions& options) {
  const int wanted = options.replicas_to_aggregate;
  if (options.server_ranks.empty() && options.servers < 1)
    throw InputError(setting("servers", options.servers) + ": values need one server or more");
  if (wanted < 0) throw InputError(setting("replicas_to_aggregate", wanted) + ": a number from 0 on");
  if (options.asynchronous && wanted != 0)
    throw InputError(setting("replicas_to_aggregate", wanted) + " goes with rounds; with " + setting("asynchronous") +
                     " each gradient is applied as it comes");
  if (!options.asynchronous && options.max_staleness)
    throw InputError(setting("max_staleness", *options.max_staleness) + " goes with " + setting("asynchronous") +
                     "; in rounds no gradient is older than its round");
  if (options.part_bytes == 0 || options.part_bytes % part_unit != 0)
    throw InputError(setting("part_bytes", options.part_bytes) + ": expected a multiple of 64");
}

// ---- a handle -------------------------------------------------------------------------------------------------------

bool KeyValueHandle::done() const {
  if (operation_ == nullptr) return true;
  if (operation_->unanswered > 0) worker_->poll();
  if (operation_->unanswered > 0) return false;
  KeyValueWorker::require_success(*operation_);
  return true;
}

void KeyValueHandle::wait() const {
  if (operation_ != nullptr) worker_->wait(*operation_);
}

// ---- the store ------------------------------------------------------------------------------------------------------

KeyValueStore::KeyValueStore(const Communicator& communicator, const KeyValueOptions& options)
    : ranks_(group_for(communicator, options)), roles_(roles_of(options, ranks_.size())) {
  const Communicator alike = ranks_.split(is_server() ? 1 : 0, rank());
  if (is_server())
    server_ = std::make_unique<KeyValueServer>(ranks_, roles_, options);
  else
    worker_ = std::make_unique<KeyValueWorker>(ranks_, alike, roles_, options);
}

KeyValueStore::KeyValueStore(KeyValueStore&&) noexcept = default;
KeyValueStore& KeyValueStore::operator=(KeyValueStore&&) noexcept = default;
KeyValueStore::~KeyValueStore() = default;

const Roles& KeyValueStore::roles() const noexcept { return roles_; }
int KeyValueStore::rank() const noexcept { return ranks_.rank(); }

KeyValueStatistics KeyValueStore::statistics() const {
  return server_ != nullptr ? server_->statistics() : worker_->statistics();
}

void KeyValueStore::set_updater(const OptimizerOptions& optimizer, const Schedule& schedule) {
  auto update = optimizer_update(optimizer, schedule);
  require_updatable();
  if (server_ != nullptr) server_->set_update(std::move(update));
}

void KeyValueStore::set_updater(KeyValueUpdate update) {
  if (!update) throw LogicError("the updater of a key-value store is an empty function");
  require_updatable();
  if (server_ != nullptr) server_->set_update(function_update(std::move(update)));
}

void KeyValueStore::require_updatable() const {
  if (server_ != nullptr && server_->has_parts())
    throw LogicError("the updater of a key-value store is set after it has served: set it before");
}

void KeyValueStore::run(const std::function<void()>& work) {
  if (is_server()) return serve();
  try {
    work();
    close();
  } catch (const std::exception& error) {
    worker_->leave(error.what());
    throw;
  } catch (...) {
    worker_->leave("its work threw something that is no std::exception");
    throw;
  }
}

void KeyValueStore::serve() {
  if (server_ == nullptr)
    throw LogicError("serve is for servers; rank " + std::to_string(rank()) + " is a worker of the key-value store");
  server_->serve();
}

KeyValueWorker& KeyValueStore::worker(const char* call) const {
  if (worker_ == nullptr)
    throw LogicError(std::string(call) + " is for workers; rank " + std::to_string(rank()) +
                     " is a server of the key-value store, and calls serve");
  return *worker_;
}

void KeyValueStore::init(std::span<const Value> values) { worker("init").init(values); }

void KeyValueStore::init(std::string_view key, std::span<const float> values) {
  const std::array one{Value{std::string(key), values}};
  init(one);
}

KeyValueHandle KeyValueStore::start_push(std::string_view key, std::span<const float> gradient) {
  KeyValueWorker& mine = worker("push");
  return {mine, mine.push(key, gradient)};
}

KeyValueHandle KeyValueStore::start_pull(std::string_view key, std::span<float> out) {
  KeyValueWorker& mine = worker("pull");
  return {mine, mine.pull(key, out)};
}

std::uint64_t KeyValueStore::version(std::string_view key) const { return worker("version").version(key); }

void KeyValueStore::poll() { worker("poll").poll(); }
void KeyValueStore::barrier() { worker("barrier").barrier(); }
void KeyValueStore::close() { worker("close").close(); }

}  // namespace ronda
