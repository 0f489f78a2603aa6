#pragma once

/// The text of a kernel cache (kernel_cache.h):
///
///     paceline kernels, format 1
///     MACHINE
///     ALGORITHM PROBLEM       a line for each problem; an algorithm's name has no spaces
///     end COUNT               the last line: without it the file was not written to its end

#include <optional>
#include <string>
#include <string_view>

#include "engine/engine.h"

namespace paceline::engine {

struct KernelTable {
  std::string machine;  ///< one line
  KernelAlgorithms algorithms;
};

/// Nothing where `text` is no whole table.
[[nodiscard]] std::optional<KernelTable> kernel_table_from(std::string_view text);
/// Requires   no algorithm has a space in its name, is empty or is called "end"
[[nodiscard]] std::string as_text(const KernelTable& table);

/// Whether it begins like a table, whole or not.
[[nodiscard]] bool is_kernel_table(std::string_view text);

}  // namespace paceline::engine
