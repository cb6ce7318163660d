// An Ethernet switch between network namespaces that delays what it passes on; for netns.sh, where the kernel has
// nothing that does (sch_netem).
//
//   delayed_switch RATE DELAY PID…      RATE as in 1gbit, or unlimited; DELAY as in 50us
//
// Each PID's network namespace gets a device data0, and all are connected. A frame of B bytes for port j leaves the
// switch at time t, when the port has sent what came before, and arrives a delay later:
//     free[j] = max(t, free[j]) + B / rate         arrival = free[j] + delay
// It is dropped where it would wait longer than 20 ms. Says "ready" when it is, and goes on until it is killed.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <queue>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

class File {
 public:
  explicit File(const std::string& path, int flags) : descriptor_(open(path.c_str(), flags)), name_(path) {
    check(descriptor_ >= 0);
  }
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), name_(std::move(other.name_)) {}
  File& operator=(File&&) = delete;
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  void check(bool fine) const {
    if (!fine) throw std::runtime_error(name_ + ": " + std::strerror(errno));
  }

 private:
  int descriptor_;
  std::string name_;
};

/// What the kernel puts before each frame: the first fields of `virtio_net_hdr_v1`, whose header is not C++.
struct FrameHeader {
  std::uint8_t flags, segmentation;
  std::uint16_t header_bytes, segment_bytes, checksum_start, checksum_offset, buffers;
};

constexpr std::size_t ethernet_header = 14, largest_frame = sizeof(FrameHeader) + ethernet_header + 65536 + 64;

/// A device in the network namespace of `process`. Takes and gives up to 64 KiB as one frame, as network cards do:
/// cutting them up would cost more than all the rest.
File make_device(const std::string& process) {
  const File here("/proc/self/ns/net", O_RDONLY), there("/proc/" + process + "/ns/net", O_RDONLY);
  there.check(setns(there.descriptor(), CLONE_NEWNET) == 0);
  File device("/dev/net/tun", O_RDWR | O_NONBLOCK);
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  std::strcpy(request.ifr_name, "data0");
  device.check(ioctl(device.descriptor(), TUNSETIFF, &request) == 0);
  int header = sizeof(FrameHeader);
  device.check(ioctl(device.descriptor(), TUNSETVNETHDRSZ, &header) == 0);
  device.check(ioctl(device.descriptor(), TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) == 0);
  here.check(setns(here.descriptor(), CLONE_NEWNET) == 0);
  return device;
}

/// What a frame takes of a cable: where it will be cut into segments each has its headers, and 24 bytes around it.
double bytes_on_the_wire(std::span<const char> frame) {
  FrameHeader header{};
  std::memcpy(&header, frame.data(), sizeof header);
  const double bytes = static_cast<double>(frame.size() - sizeof header);
  if (header.segmentation == 0 || header.segment_bytes == 0) return bytes + 24;
  const double headers = header.header_bytes, segments = std::max(1.0, (bytes - headers) / header.segment_bytes);
  return bytes + (segments - 1) * headers + segments * 24;
}

/// An Ethernet address, six bytes from `at` of the frame.
std::uint64_t address(std::span<const char> frame, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, frame.data() + sizeof(FrameHeader) + at, 6);
  return value;
}

class Switch {
 public:
  Switch(std::vector<File> devices, double bytes_per_second, Clock::duration delay)
      : bytes_per_second_(bytes_per_second), delay_(delay) {
    for (File& device : devices) ports_.push_back({std::move(device), {}});
  }

  [[noreturn]] void run() {
    std::vector<pollfd> polled;
    for (const Port& port : ports_) polled.push_back({port.device.descriptor(), POLLIN, 0});
    for (;;) {
      deliver();
      const auto left = under_way_.empty() ? std::chrono::seconds(1) : under_way_.top().arrival - Clock::now();
      const auto wait = std::chrono::duration_cast<std::chrono::nanoseconds>(std::max(left, Clock::duration::zero()));
      const timespec timeout{wait.count() / 1'000'000'000, wait.count() % 1'000'000'000};
      if (ppoll(polled.data(), polled.size(), &timeout, nullptr) <= 0) continue;
      for (std::size_t port = 0; port < ports_.size(); ++port)
        if ((polled[port].revents & POLLIN) != 0) accept(port);
    }
  }

 private:
  static constexpr std::chrono::milliseconds longest_queue{20};
  static constexpr int frames_a_turn = 8;

  struct Port {
    File device;
    Time free;  ///< when it has sent all that waits for it
  };
  struct Frame {
    Time arrival;
    std::uint64_t number;  ///< keeps the order of those that arrive together
    std::size_t port;
    std::vector<char> bytes;
    bool operator>(const Frame& other) const {
      return std::pair(arrival, number) > std::pair(other.arrival, other.number);
    }
  };

  void deliver() {
    while (!under_way_.empty() && under_way_.top().arrival <= Clock::now()) {
      const Frame& frame = under_way_.top();
      // A host that takes no more loses it, as on a real network.
      static_cast<void>(!write(ports_[frame.port].device.descriptor(), frame.bytes.data(), frame.bytes.size()));
      under_way_.pop();
    }
  }

  void accept(std::size_t from) {
    for (int i = 0; i < frames_a_turn; ++i) {
      const ssize_t bytes = read(ports_[from].device.descriptor(), buffer_.data(), buffer_.size());
      if (bytes <= static_cast<ssize_t>(sizeof(FrameHeader) + ethernet_header)) return;
      const std::span<const char> frame(buffer_.data(), static_cast<std::size_t>(bytes));
      port_of_[address(frame, 6)] = from;
      const auto known = port_of_.find(address(frame, 0));
      for (std::size_t port = 0; port < ports_.size(); ++port)
        if (known == port_of_.end() ? port != from : port == known->second) pass_on(frame, port);
    }
  }

  void pass_on(std::span<const char> frame, std::size_t to) {
    const Time now = Clock::now();
    Time& free = ports_[to].free;
    if (free > now + longest_queue) return;
    const std::chrono::duration<double> sending(bytes_on_the_wire(frame) / bytes_per_second_);
    free = std::max(free, now) + std::chrono::duration_cast<Clock::duration>(sending);
    under_way_.push({free + delay_, number_++, to, {frame.begin(), frame.end()}});
  }

  std::vector<Port> ports_;
  double bytes_per_second_;
  Clock::duration delay_;
  std::map<std::uint64_t, std::size_t> port_of_;  ///< by Ethernet address, as learned from what came
  std::priority_queue<Frame, std::vector<Frame>, std::greater<>> under_way_;
  std::uint64_t number_ = 0;
  std::array<char, largest_frame> buffer_{};
};

double number_with_unit(const std::string& text, const std::map<std::string, double>& units) {
  std::size_t digits = 0;
  const double number = std::stod(text, &digits);
  const auto unit = units.find(text.substr(digits));
  if (unit == units.end() || number <= 0) throw std::invalid_argument("cannot understand '" + text + "'");
  return number * unit->second;
}

/// Before the ranks, which may poll on all cores.
void take_precedence() {
  sched_param priority{};
  priority.sched_priority = 10;
  if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0) setpriority(PRIO_PROCESS, 0, -20);
  prctl(PR_SET_TIMERSLACK, 1);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.size() < 3) throw std::invalid_argument("usage: delayed_switch RATE DELAY PID…");
    const double bits = arguments[0] == "unlimited"
                            ? 1e15
                            : number_with_unit(arguments[0], {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}});
    const std::chrono::duration<double> delay(number_with_unit(arguments[1], {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}));
    std::vector<File> devices;
    for (std::size_t i = 2; i < arguments.size(); ++i) devices.push_back(make_device(arguments[i]));
    take_precedence();
    Switch network(std::move(devices), bits / 8, std::chrono::duration_cast<Clock::duration>(delay));
    std::cout << "ready" << std::endl;
    network.run();
  } catch (const std::exception& error) {
    std::cerr << "delayed_switch: " << error.what() << "\n";
    return 1;
  }
}
