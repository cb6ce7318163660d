#pragma once

namespace ronda {

/// Columns of the terminal that file descriptor `descriptor` (1 or 2) writes to; 0 if it is no terminal, or one without
/// escape codes (TERM is dumb, or not set).
///
/// Under a launcher the descriptor of the launcher is examined, if it runs on this host: Open MPI gives its ranks a
/// pseudo-terminal or a pipe, wherever its own output goes.
[[nodiscard]] int terminal_width(int descriptor);

}  // namespace ronda
