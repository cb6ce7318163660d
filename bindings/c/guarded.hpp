#pragma once
#include <ronda/core/error.hpp>
#include <ronda/ronda.h>

#include <new>
#include <string>

namespace ronda {

/// Of this thread: what ronda_last_error shows.
std::string& last_error();
/// Keeps the text, and returns the status.
ronda_status failed(ronda_status status, const char* text) noexcept;

/// Runs `body`, and turns what it throws into a status.
template <class Body>
ronda_status guarded(const Body& body) noexcept {
  try {
    body();
    return RONDA_OK;
  } catch (const InputError& error) {
    return failed(RONDA_ERROR_INPUT, error.what());
  } catch (const LogicError& error) {
    return failed(RONDA_ERROR_LOGIC, error.what());
  } catch (const CommunicationError& error) {
    return failed(RONDA_ERROR_COMMUNICATION, error.what());
  } catch (const ResourceError& error) {
    return failed(RONDA_ERROR_RESOURCE, error.what());
  } catch (const std::bad_alloc&) {
    return failed(RONDA_ERROR_RESOURCE, "out of memory");
  } catch (const Error& error) {
    return failed(error.status() == ExitStatus::bad_input ? RONDA_ERROR_INPUT : RONDA_ERROR_OTHER, error.what());
  } catch (const std::exception& error) {
    return failed(RONDA_ERROR_OTHER, error.what());
  } catch (...) {
    return failed(RONDA_ERROR_OTHER, "something that is no exception was thrown");
  }
}

template <class T>
T& given(T* pointer, const char* what) {
  if (pointer == nullptr) throw InputError(std::string(what) + " is NULL");
  return *pointer;
}

}  // namespace ronda
