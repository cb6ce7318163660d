#pragma once

namespace ronda {

/// Columns of the terminal that file descriptor `descriptor` (1 or 2) ends at; 0 where it ends at none, or at
/// one that knows no escape codes (TERM is dumb, or not set).
///
/// Under a launcher the descriptor itself says nothing: Open MPI gives its ranks a pseudo-terminal or a pipe whatever
/// it writes to. Then what counts is where the launcher's own descriptor goes, if it runs on this host.
[[nodiscard]] int terminal_width(int descriptor);

}  // namespace ronda
