#include <ronda/collectives/staged/staged.hpp>
#include <ronda/core/error.hpp>

#include <utility>

namespace ronda {

bool Staged::Arrival::arrived() noexcept {
  try {
    return event_.ready();
  } catch (...) {
    error_ = std::current_exception();
    return true;
  }
}

void Staged::Arrival::finish() {
  if (error_) std::rethrow_exception(error_);
}

Staged::Staged(std::shared_ptr<DeviceLanes> lanes, Buffer staging, std::vector<Piece> pieces, std::string& note)
    : lanes_(std::move(lanes)), staging_(std::move(staging)), pieces_(std::move(pieces)), here_(pieces_.size()) {
  try {
    if (staging_.bytes() > 0) pinned_ = lanes_->context->pin({staging_.data(), staging_.bytes()});
  } catch (const Error& error) {  // what is wrong with the device itself, the first copy says
    note = std::string(error.what()) + "; copies to and from the GPU take a detour";
  }
}

Staged::~Staged() {
  for (Stream* stream : {lanes_->to_host.get(), lanes_->to_device.get()}) {
    try {
      stream->synchronize();
    } catch (const Error&) {  // then nothing is on its way any more, and whoever waited has heard of it
    }
  }
}

Task Staged::run() {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (!pieces_[i].out) continue;
    const auto& [device, host] = *pieces_[i].out;
    lanes_->context->copy(device, host.data(), host.size(), *lanes_->to_host);
    here_[i] = lanes_->to_host->record();
  }
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    Arrival here(here_[i]);
    co_await here;
    if (pieces_[i].algorithm != nullptr) co_await pieces_[i].algorithm->run();
    for (const auto& [device, host] : pieces_[i].back)
      lanes_->context->copy(host.data(), device, host.size(), *lanes_->to_device);
  }
  Arrival back(lanes_->to_device->record());
  co_await back;
}

void Staged::visit_traffic(const std::function<void(Traffic&)>& visit) {
  for (const Piece& piece : pieces_)
    if (piece.algorithm != nullptr) piece.algorithm->visit_traffic(visit);
}

void Staged::prepare() {
  Algorithm::prepare();
  for (const Piece& piece : pieces_)
    if (piece.algorithm != nullptr) piece.algorithm->prepare();
}

void Staged::visit(const std::string& name, StateVisitor& visitor) {
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    if (pieces_[i].algorithm != nullptr) pieces_[i].algorithm->visit(name + ".piece" + std::to_string(i), visitor);
}

std::size_t Staged::memory() const noexcept {
  std::size_t bytes = staging_.bytes();
  for (const Piece& piece : pieces_)
    if (piece.algorithm != nullptr) bytes += piece.algorithm->memory();
  return bytes;
}

}  // namespace ronda
