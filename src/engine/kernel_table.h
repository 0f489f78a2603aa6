#pragma once

/// Reads and writes the text of a kernel cache file (kernel_cache.h). PROBLEM is the name of a convolution
/// or dense layer in one direction.
///
///     paceline kernels, format 1
///     MACHINE
///     ALGORITHM PROBLEM       a line for each problem; an algorithm's name has no spaces
///     end COUNT               the last line; a file without it is incomplete

#include <optional>
#include <string>
#include <string_view>

#include "engine/engine.h"

namespace paceline::engine {

struct KernelTable {
  std::string machine;  ///< one line
  KernelAlgorithms algorithms;
};

/// Empty if `text` is not a complete table.
[[nodiscard]] std::optional<KernelTable> kernel_table_from(std::string_view text);
/// Requires  no algorithm's name is empty, is "end" or has a space
[[nodiscard]] std::string as_text(const KernelTable& table);

/// Whether `text` begins like a table, complete or not.
[[nodiscard]] bool is_kernel_table(std::string_view text);

}  // namespace paceline::engine
