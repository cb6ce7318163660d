#include <ronda/core/error.hpp>
#include <ronda/runtime/key_value/detail/server.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

Message message_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return ronda::message_of(error);
  } catch (...) {
    return "an exception of an unknown type";
  }
}

}  // namespace

KeyValueServer::KeyValueServer(const Communicator& communicator, const Roles& roles, const KeyValueOptions& options)
    : communicator_(communicator),
      together_{options, std::vector<bool>(static_cast<std::size_t>(roles.workers()), true), *this, statistics_} {
  for (int worker = 0; worker < roles.workers(); ++worker)
    connections_.emplace_back(communicator, roles.rank_of_worker(worker));
}

void KeyValueServer::serve() {
  for (int worker = 0; worker < together_.workers(); ++worker)
    if (together_.open[static_cast<std::size_t>(worker)]) channel(worker).listen();
  communicator_.wait_until([&] {
    while (move_on()) {
    }
    look_for_stall();
    return is_over();
  });
  if (failure_) std::rethrow_exception(failure_);
}

bool KeyValueServer::is_over() {
  return std::ranges::none_of(connections_, [](Connection& c) { return c.channel.listening() || c.channel.sending(); });
}

KeyValueStatistics KeyValueServer::statistics() const {
  KeyValueStatistics result = statistics_;
  for (const Connection& connection : connections_) {
    result.sent_bytes += connection.channel.sent_bytes();
    result.received_bytes += connection.channel.received_bytes();
  }
  return result;
}

// ---- questions ------------------------------------------------------------------------------------------------------

/// One of each worker, so that none is served before the others.
bool KeyValueServer::move_on() {
  bool moved = false;
  for (int worker = 0; worker < together_.workers(); ++worker) moved |= take_question(worker);
  return moved;
}

bool KeyValueServer::take_question(int worker) {
  Connection& connection = connections_[static_cast<std::size_t>(worker)];
  const MessageHeader* header = connection.channel.receive([&](const MessageHeader& coming) {
    const auto bytes = static_cast<std::size_t>(coming.bytes);
    connection.incoming = together_.pool.take((bytes + sizeof(float) - 1) / sizeof(float));
    return std::span(reinterpret_cast<std::byte*>(connection.incoming.get()), bytes);
  });
  static_cast<void>(connection.channel.sending());  // what was sent is free for new values
  if (header == nullptr) return false;
  const MessageHeader question = *header;
  auto incoming = std::move(connection.incoming);
  if (question.kind == MessageKind::leave) {
    leave(worker, {reinterpret_cast<const char*>(incoming.get()), static_cast<std::size_t>(question.bytes)});
    return true;
  }
  if (question.kind != MessageKind::close) connection.channel.listen();
  if (question.kind == MessageKind::waiting) {
    if (probe_.sent && question.operation == probe_.number) ++probe_.replies;
    return true;
  }
  probe_.sent = false;
  ++connection.unanswered;
  take({worker, question.operation}, question, std::move(incoming));
  return true;
}

/// Where something is thrown, what was asked is answered already, or `fail` answers it with all that waits.
void KeyValueServer::take(const Asked& asked, const MessageHeader& question, GradientPool::Piece incoming) {
  if (question.kind == MessageKind::close) return close(asked);
  if (failure_) return send_failure(asked);
  try {
    do_as_asked(asked, question, std::move(incoming));
  } catch (...) {
    fail(std::current_exception());
  }
}

void KeyValueServer::do_as_asked(const Asked& asked, const MessageHeader& question, GradientPool::Piece incoming) {
  switch (question.kind) {
    case MessageKind::init: return make_part(asked, question, incoming.get());
    case MessageKind::barrier: return enter_barrier(asked);
    default: break;
  }
  const auto part = parts_.find(question.part);
  if (part != parts_.end() && question.kind == MessageKind::push)
    return part->second->push({asked, question.version, std::move(incoming)});
  if (part != parts_.end() && question.kind == MessageKind::pull) return part->second->pull(asked);
  fail(std::make_exception_ptr(LogicError("worker " + std::to_string(asked.worker) +
                                          " asked a key-value server for what it does not have: part " +
                                          std::to_string(question.part) + " of the values")));
  send_failure(asked);
}

/// No part has the question yet, which would give it back where something fails.
void KeyValueServer::make_part(const Asked& asked, const MessageHeader& question, const float* incoming) {
  try {
    const std::size_t count = (question.bytes - question.key_bytes) / sizeof(float);
    const std::string key(reinterpret_cast<const char*>(incoming + count), question.key_bytes);
    const KeyPart part{key, question.begin, count, question.total};
    parts_[question.part] = std::make_unique<ServedPart>(together_, part, std::span(incoming, count));
  } catch (...) {
    fail(std::current_exception());
    return send_failure(asked);
  }
  done(asked);
}

void KeyValueServer::enter_barrier(const Asked& asked) {
  in_barrier_.push_back(asked);
  end_barrier();
}

void KeyValueServer::end_barrier() {
  const auto open = std::ranges::count(together_.open, true);
  if (std::ssize(in_barrier_) < open) return;
  for (const Asked& asked : std::exchange(in_barrier_, {})) done(asked);
}

void KeyValueServer::close(const Asked& asked) {
  done(asked);
  worker_gone(asked.worker);
}

void KeyValueServer::leave(int worker, const std::string& why) {
  together_.open[static_cast<std::size_t>(worker)] = false;
  fail(std::make_exception_ptr(
      CommunicationError("worker " + std::to_string(worker) + " left the key-value store: " + why)));
}

void KeyValueServer::worker_gone(int worker) {
  together_.open[static_cast<std::size_t>(worker)] = false;
  if (failure_) return;
  try {
    for (auto& [number, part] : parts_) part->worker_closed(worker);
    end_barrier();
  } catch (...) {
    fail(std::current_exception());
  }
}

void KeyValueServer::fail(std::exception_ptr failure) {
  if (failure_) return;
  failure_ = std::move(failure);
  failure_text_ = std::make_shared<const std::string>(message_of(failure_).packed());
  for (auto& [number, part] : parts_)
    for (const Asked& asked : part->take_waiting()) send_failure(asked);
  for (const Asked& asked : together_.ahead.take_held()) send_failure(asked);
  for (const Asked& asked : std::exchange(in_barrier_, {})) send_failure(asked);
}

// ---- a stall --------------------------------------------------------------------------------------------------------

void KeyValueServer::look_for_stall() {
  if (failure_) return;
  const auto is_open = [&](std::size_t worker) { return together_.open[worker]; };
  for (std::size_t worker = 0; worker < connections_.size(); ++worker)
    if (is_open(worker) && connections_[worker].unanswered == 0) return;
  const std::int64_t open = std::ranges::count(together_.open, true);
  if (open == 0) return;
  if (probe_.sent) {
    if (probe_.replies == open) fail(std::make_exception_ptr(CommunicationError(why_stalled())));
    return;
  }
  probe_ = {probe_.number + 1, true, 0};
  for (std::size_t worker = 0; worker < connections_.size(); ++worker)
    if (is_open(worker)) connections_[worker].channel.send({.kind = MessageKind::probe, .operation = probe_.number});
}

Message KeyValueServer::why_stalled() const {
  Message why = together_.ahead.why_held();
  for (const auto& [number, part] : parts_)
    if (const Message one = part->why_waiting(); !one.empty()) why += (why.empty() ? "" : "; ") + one;
  return "every worker of the key-value store waits for another one: " + why +
         ". All workers push and pull the same keys, in the same order or within " + setting("ahead_bytes");
}

// ---- answers --------------------------------------------------------------------------------------------------------

void KeyValueServer::send(const Asked& asked, MessageHeader answer, std::span<const std::byte> bytes,
                          std::shared_ptr<const void> keeper) {
  answer.operation = asked.operation;
  answer.bytes = bytes.size();
  Connection& connection = connections_[static_cast<std::size_t>(asked.worker)];
  connection.channel.send(answer, bytes, std::move(keeper));
  --connection.unanswered;
}

void KeyValueServer::send_answer(const Asked& asked, MessageKind kind) { send(asked, {.kind = kind}); }

void KeyValueServer::send_failure(const Asked& asked) {
  send(asked, {.kind = MessageKind::failed}, std::as_bytes(std::span(*failure_text_)), failure_text_);
}

void KeyValueServer::values(const Asked& asked, const PartValues& values) {
  send(asked, {.kind = MessageKind::done, .version = values.version},
       std::as_bytes(std::span(values.elements.get(), values.count)), values.elements);
}

}  // namespace ronda
