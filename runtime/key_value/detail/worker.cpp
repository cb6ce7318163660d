#include <ronda/collectives/phase.hpp>
#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/runtime/key_value/detail/worker.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

namespace ronda {
namespace {

/// Seconds that a worker which leaves gives the servers to hear it.
constexpr double longest_leave = 2;

std::string in_quotes(std::string_view key) { return "'" + std::string(key) + "'"; }

}  // namespace

KeyValueWorker::KeyValueWorker(const Communicator& communicator, const Communicator& workers, const Roles& roles,
                               const KeyValueOptions& options)
    : communicator_(communicator),
      workers_(workers),
      roles_(roles),
      placement_(roles.servers(), options.part_bytes),
      ahead_bytes_(options.ahead_bytes) {
  for (int server = 0; server < roles.servers(); ++server)
    connections_.emplace_back(communicator, roles.rank_of_server(server));
}

KeyValueWorker::~KeyValueWorker() { leave("it did not close it"); }

// ---- the calls ------------------------------------------------------------------------------------------------------

void KeyValueWorker::init(std::span<const KeyValueStore::Value> values) {
  barrier();  // a server says here who has left; in what follows the workers are by themselves
  agree(workers_, [&] { require_new(values); });
  std::string text;  // with the keys' lengths, since a key may look like the rest of a line
  for (const auto& value : values)
    text += std::to_string(value.key.size()) + " bytes: " + in_quotes(value.key) + ", " +
            std::to_string(value.values.size()) + " numbers\n";
  require_equal(workers_, "the values of a key-value store", text);
  add_keys(values);
  agree(workers_, [&] {
    if (workers_.rank() == 0) send_values(values);
  });
}

void KeyValueWorker::require_new(std::span<const KeyValueStore::Value> values) const {
  std::set<std::string_view> seen;
  for (const auto& value : values) {
    if (keys_.contains(value.key) || !seen.insert(value.key).second)
      throw LogicError("init of " + in_quotes(value.key) + ", which is in the key-value store already");
    if (value.values.size() > static_cast<std::size_t>(Shape::most_elements))
      throw InputError("init of " + in_quotes(value.key) + " with " + std::to_string(value.values.size()) +
                       " numbers, more than memory can have");
  }
}

void KeyValueWorker::add_keys(std::span<const KeyValueStore::Value> values) {
  std::vector<std::size_t> counts;
  for (const auto& value : values) counts.push_back(value.values.size());
  const auto places = placement_.place(counts);
  for (std::size_t i = 0; i < values.size(); ++i) {
    Key& key = keys_[values[i].key];
    key.count = counts[i];
    for (const PlacedPart& place : places[i]) key.parts.push_back({parts_++, place});
  }
}

void KeyValueWorker::send_values(std::span<const KeyValueStore::Value> values) {
  const Phase phase(communicator_, Activity::starting);  // the other workers wait for this one
  const auto operation = std::make_shared<KeyValueOperation>();
  for (const auto& [key, numbers] : values)
    for (const Part& part : keys_.find(key)->second.parts) {
      const auto bytes = std::as_bytes(numbers.subspan(part.place.range.begin, part.place.range.size()));
      const auto message = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
      std::ranges::copy(std::as_bytes(std::span(key)), std::back_inserter(*message));
      ask(part.place.server,
          {.kind = MessageKind::init,
           .part = part.number,
           .begin = part.place.range.begin,
           .total = numbers.size(),
           .key_bytes = key.size()},
          {operation}, *message, message);
    }
  wait(*operation);
}

KeyValueWorker::Key& KeyValueWorker::find(std::string_view name, const char* call) {
  const auto found = keys_.find(name);
  if (found == keys_.end())
    throw LogicError(std::string(call) + " of " + in_quotes(name) +
                     ", which the key-value store does not have: init it first");
  return found->second;
}

KeyValueWorker::Key& KeyValueWorker::find(std::string_view name, std::size_t count, const char* call) {
  require_open();
  Key& key = find(name, call);
  if (key.count != count)
    throw LogicError(std::string(call) + " of " + in_quotes(name) + " with " + std::to_string(count) +
                     " numbers; it was initialised with " + std::to_string(key.count));
  return key;
}

std::uint64_t KeyValueWorker::version(std::string_view name) {
  const Key& key = find(name, "version");
  std::uint64_t fewest = key.parts.empty() ? 0 : key.parts.front().version;
  for (const Part& part : key.parts) fewest = std::min(fewest, part.version);
  return fewest;
}

KeyValueWorker::Operation KeyValueWorker::push(std::string_view name, std::span<const float> gradient) {
  Key& key = find(name, gradient.size(), "push");
  if (pushing_ > ahead_bytes_) wait_until([&] { return pushing_ <= ahead_bytes_; });
  auto operation = std::make_shared<KeyValueOperation>();
  for (Part& part : key.parts) {
    const auto bytes = std::as_bytes(gradient.subspan(part.place.range.begin, part.place.range.size()));
    pushing_ += bytes.size();
    ask(part.place.server, {.kind = MessageKind::push, .part = part.number, .version = part.version},
        {.operation = operation, .pushed = bytes.size()}, bytes);
  }
  return operation;
}

KeyValueWorker::Operation KeyValueWorker::pull(std::string_view name, std::span<float> out) {
  Key& key = find(name, out.size(), "pull");
  auto operation = std::make_shared<KeyValueOperation>();
  for (Part& part : key.parts)
    ask(part.place.server, {.kind = MessageKind::pull, .part = part.number},
        {operation, &part, std::as_writable_bytes(out.subspan(part.place.range.begin, part.place.range.size()))});
  return operation;
}

void KeyValueWorker::barrier() {
  require_open();
  const auto operation = std::make_shared<KeyValueOperation>();
  ask(0, {.kind = MessageKind::barrier}, {operation});
  wait(*operation);
}

void KeyValueWorker::close() {
  require_open();
  wait_until([&] { return answered(); });
  const auto operation = std::make_shared<KeyValueOperation>();
  for (int server = 0; server < roles_.servers(); ++server) ask(server, {.kind = MessageKind::close}, {operation});
  wait(*operation);
  closed_ = true;
  if (!failure_.empty()) throw CommunicationError(failure_);
}

void KeyValueWorker::require_open() const {
  if (closed_) throw LogicError("the key-value store is closed");
}

KeyValueStatistics KeyValueWorker::statistics() const {
  KeyValueStatistics result{.dropped = dropped_};
  for (const Connection& connection : connections_) {
    result.sent_bytes += connection.channel.sent_bytes();
    result.received_bytes += connection.channel.received_bytes();
  }
  return result;
}

// ---- questions and answers ------------------------------------------------------------------------------------------

void KeyValueWorker::ask(int server, MessageHeader header, Question question, std::span<const std::byte> bytes,
                         std::shared_ptr<const void> keeper) {
  header.operation = ++last_question_;
  header.bytes = bytes.size();
  ++question.operation->unanswered;
  questions_.emplace(header.operation, std::move(question));
  Connection& connection = connections_[static_cast<std::size_t>(server)];
  connection.channel.listen();
  ++connection.unanswered;
  connection.channel.send(header, bytes, std::move(keeper));
}

void KeyValueWorker::poll() {
  for (Connection& connection : connections_) {
    while (take_answer(connection)) {
    }
    static_cast<void>(connection.channel.sending());
  }
}

bool KeyValueWorker::take_answer(Connection& connection) {
  const MessageHeader* header =
      connection.channel.receive([&](const MessageHeader& coming) { return memory_for(connection, coming); });
  if (header == nullptr) return false;
  if (header->kind == MessageKind::probe) {
    connection.probe = header->operation;
    connection.channel.listen();
    return true;
  }
  connection.probe = 0;
  const auto question = questions_.extract(header->operation);
  auto& [operation, part, out, pushed] = question.mapped();
  pushing_ -= pushed;
  if (header->kind == MessageKind::failed) {
    operation->failure = Message::unpacked(connection.text);
    if (failure_.empty()) failure_ = operation->failure;
  }
  if (header->kind == MessageKind::dropped) ++dropped_;
  if (header->kind == MessageKind::done && part != nullptr) part->version = header->version;
  --operation->unanswered;
  if (--connection.unanswered > 0) connection.channel.listen();
  return true;
}

/// Of what begins to come when this worker has left nobody wants the values any more.
std::span<std::byte> KeyValueWorker::memory_for(Connection& connection, const MessageHeader& answer) {
  if (answer.kind == MessageKind::failed) {
    connection.text.resize(answer.bytes);
    return std::as_writable_bytes(std::span(connection.text));
  }
  if (!leaving_) return questions_.at(answer.operation).out;
  scratch_.resize(std::max<std::size_t>(scratch_.size(), answer.bytes));
  return std::span(scratch_).first(answer.bytes);
}

void KeyValueWorker::wait(const KeyValueOperation& operation) {
  wait_until([&] { return operation.unanswered == 0; });
  require_success(operation);
}

void KeyValueWorker::wait_until(FunctionRef<bool()> done) {
  communicator_.wait_until([&] {
    poll();
    if (done()) return true;
    reply_to_probes();
    return false;
  });
}

/// Called while this worker waits: replies to a server if only that server can make the worker continue.
void KeyValueWorker::reply_to_probes() {
  for (Connection& connection : connections_)
    if (connection.probe != 0 && connection.unanswered == questions_.size())
      connection.channel.send({.kind = MessageKind::waiting, .operation = std::exchange(connection.probe, 0)});
}

void KeyValueWorker::require_success(const KeyValueOperation& operation) {
  if (!operation.failure.empty()) throw CommunicationError(operation.failure);
}

/// The servers answer what they still owe, and nothing to this.
void KeyValueWorker::leave(const std::string& why) noexcept {
  if (std::exchange(closed_, true)) return;
  leaving_ = true;
  try {
    const auto text = std::make_shared<const std::string>(why);
    for (Connection& connection : connections_)
      connection.channel.send({.kind = MessageKind::leave, .bytes = text->size()}, std::as_bytes(std::span(*text)),
                              text);
    const Clock& clock = communicator_.clock();
    const double end = clock.now() + longest_leave;
    const auto is_heard = [&] {
      poll();
      return answered() && std::ranges::none_of(connections_, [](Connection& c) { return c.channel.sending(); });
    };
    while (!is_heard() && clock.now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } catch (...) {  // then the others hear of that
  }
}

}  // namespace ronda
