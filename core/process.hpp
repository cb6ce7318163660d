#pragma once
#include <iosfwd>
#include <string>

namespace ronda {

/// Seconds since the operating system started this process, to a hundredth; 0 if unknown.
[[nodiscard]] double seconds_since_process_start();

/// 16 hexadecimal digits from the system's random source: unpredictable, and different in every process. Throws
/// ResourceError if the system has no such source.
[[nodiscard]] std::string random_token();

/// The name that the processor reports: `AMD EPYC 9R14 96-Core Processor`; for Arm its numbers, `CPU implementer 0x41,
/// CPU part 0xd0c, CPU variant 0x3`; "unknown" if it reports neither.
[[nodiscard]] std::string processor_name();
/// The same, read from the text of a /proc/cpuinfo.
[[nodiscard]] std::string processor_name(std::istream& cpuinfo);

/// The host name; "localhost" if the system has no name.
[[nodiscard]] std::string host_name();

/// Whether the process is an MPI launcher (mpirun and similar) or a daemon of one, by its name. False if it has ended.
[[nodiscard]] bool is_launcher(int process);

/// The number of child processes of a process, including zombies.
[[nodiscard]] int children_of(int process);

/// The parent of a process; 0 if unknown.
[[nodiscard]] int parent_of(int process);

}  // namespace ronda
