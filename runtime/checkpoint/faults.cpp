#include <ronda/core/error.hpp>
#include <ronda/core/names.hpp>
#include <ronda/runtime/checkpoint/faults.hpp>

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <iterator>
#include <thread>

namespace ronda {
namespace {

constexpr EnumNames<FaultKind, 10> fault_kinds{{
    {FaultKind::kill, "kill"},
    {FaultKind::stop, "stop"},
    {FaultKind::fail_write, "fail-write"},
    {FaultKind::kill_write, "kill-write"},
    {FaultKind::kill_rename, "kill-rename"},
    {FaultKind::flip, "flip"},
    {FaultKind::flip_gradient, "flip-gradient"},
    {FaultKind::nan, "nan"},
    {FaultKind::slow, "slow"},
    {FaultKind::slow_read, "slow-read"},
}};

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

}  // namespace

Fault parse_fault(std::string_view text) {
  const auto at = std::min(text.find('@'), text.size()), colon = std::min(text.find(':', at), text.size());
  Fault fault{.kind = parse_name(fault_kinds, text.substr(0, at), "a fault, KIND@STEP[:RANK]")};
  const bool sound = at < text.size() && parse_number(text.substr(at + 1, colon - at - 1), fault.step) &&
                     (colon == text.size() || (parse_number(text.substr(colon + 1), fault.rank) && fault.rank >= 0));
  if (!sound) throw InputError("'" + std::string(text) + "' is not a fault: expected KIND@STEP[:RANK]");
  return fault;
}

std::string text_of(const Fault& fault) {
  return std::string(find_name(fault_kinds, fault.kind)) + "@" + std::to_string(fault.step) + ":" +
         std::to_string(fault.rank);
}

Faults::Faults(const std::vector<Fault>& faults, int rank) {
  std::ranges::copy_if(faults, std::back_inserter(faults_), [&](const Fault& fault) { return fault.rank == rank; });
}

void Faults::before_step(std::uint64_t step) {
  if (faults_.empty()) return;
  if (std::ranges::any_of(faults_, [&](const Fault& f) { return f.kind == FaultKind::kill && f.step == step; }))
    die_at_once();
  if (std::ranges::any_of(faults_, [&](const Fault& f) { return f.kind == FaultKind::stop && f.step == step; }))
    ::kill(::getpid(), SIGTERM);
  if (std::ranges::any_of(faults_, [&](const Fault& f) { return f.kind == FaultKind::slow && f.step <= step; }))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

bool Faults::happens(FaultKind kind, std::uint64_t step) {
  const auto found = std::ranges::find_if(faults_, [&](const Fault& f) { return f.kind == kind && f.step <= step; });
  if (found == faults_.end()) return false;
  faults_.erase(found);
  return true;
}

void flip_bit(float& number) noexcept {
  number = std::bit_cast<float>(std::bit_cast<std::uint32_t>(number) ^ (1U << 22));
}

void die_at_once() noexcept {
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

}  // namespace ronda
