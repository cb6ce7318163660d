#include <ronda/collectives/members/carried_error.hpp>

#include <new>

namespace ronda {
namespace {

template <class Thrown>
[[noreturn]] void throw_marked(Thrown error, bool agreed) {
  if (agreed) error.set_agreed();
  throw error;
}

}  // namespace

CarriedError::Kind CarriedError::kind_of(const Error& error) noexcept {
  if (dynamic_cast<const InputError*>(&error) != nullptr) return Kind::input;
  if (dynamic_cast<const ResourceError*>(&error) != nullptr) return Kind::resource;
  if (dynamic_cast<const DeviceError*>(&error) != nullptr) return Kind::device;
  if (dynamic_cast<const CommunicationError*>(&error) != nullptr) return Kind::communication;
  if (dynamic_cast<const LogicError*>(&error) != nullptr) return Kind::logic;
  return Kind::error;
}

CarriedError CarriedError::current(std::string_view place) {
  constexpr auto failed = ExitStatus::failed;
  try {
    throw;
  } catch (const Error& error) {
    return CarriedError(error);
  } catch (const std::bad_alloc&) {
    return {Kind::resource, failed, (place.empty() ? "" : std::string(place) + ": ") + "out of memory"};
  } catch (const std::exception& error) {
    return {Kind::error, failed, error.what()};
  } catch (...) {
    return {Kind::error, failed, "something that is no exception was thrown"};
  }
}

std::optional<CarriedError> CarriedError::parse(std::string_view text) {
  if (text.size() < 2 || text[0] < static_cast<char>(Kind::error) || text[0] > static_cast<char>(Kind::logic))
    return {};
  return CarriedError(static_cast<Kind>(text[0]), static_cast<ExitStatus>(static_cast<unsigned char>(text[1])),
                      Message::unpacked(text.substr(2)));
}

std::string CarriedError::text() const {
  return std::string{static_cast<char>(kind_), static_cast<char>(static_cast<unsigned char>(status_))} + why_.packed();
}

void CarriedError::raise(const std::string& who, bool agreed) const {
  const Message message = who + why_;
  switch (kind_) {
    case Kind::input: throw_marked(InputError(message), agreed);
    case Kind::resource: throw_marked(ResourceError(message, status_), agreed);
    case Kind::device: throw_marked(DeviceError(message, status_), agreed);
    case Kind::communication: throw_marked(CommunicationError(message, status_), agreed);
    case Kind::logic: throw_marked(LogicError(message, status_), agreed);
    case Kind::error: break;
  }
  throw_marked(Error(message, status_), agreed);
}

}  // namespace ronda
