#pragma once

/// The reason for a write that failed, in words.

#include <string>

namespace paceline::base {

/// Why the system refused a write, for a sentence: its reason for `error` (an errno), and where that is the
/// limit of a file's size (ulimit -f, which ends a process that does not ignore SIGXFSZ) the limit too.
[[nodiscard]] std::string reason_of_write(int error);

}  // namespace paceline::base
