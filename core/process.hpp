#pragma once
#include <iosfwd>
#include <string>

namespace ronda {

/// Seconds since the operating system started this process, to a hundredth; 0 where it does not say.
[[nodiscard]] double seconds_since_process_start();

/// 16 hexadecimal digits from the system's source of random bits: nobody can foretell them, and no two processes get
/// the same. Throws ResourceError where the system has none.
[[nodiscard]] std::string random_token();

/// The processor's name as it gives it: `AMD EPYC 9R14 96-Core Processor`; an Arm's numbers, `CPU implementer 0x41, CPU
/// part 0xd0c, CPU variant 0x3`; "unknown" where it gives neither.
[[nodiscard]] std::string processor_name();
/// The same of what is in a /proc/cpuinfo.
[[nodiscard]] std::string processor_name(std::istream& cpuinfo);

/// This machine's name; "localhost" where the system gives none.
[[nodiscard]] std::string host_name();

/// Whether that process is an MPI launcher or a daemon of one, by its name: mpirun and its kin. False where it is gone.
[[nodiscard]] bool is_launcher(int process);

/// The number of child processes of a process, with ended ones that it has not waited for.
[[nodiscard]] int children_of(int process);

/// The parent of a process; 0 where that cannot be known.
[[nodiscard]] int parent_of(int process);

}  // namespace ronda
