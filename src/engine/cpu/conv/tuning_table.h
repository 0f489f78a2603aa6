#pragma once

/// The text of a kernel cache (tuning_cache.h):
///
///     paceline kernels, format 1
///     MACHINE
///     ALGORITHM KEY           a line for each product, KEY as key_of() writes it
///     end COUNT               the last line: without it the file was not written to its end

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "engine/cpu/conv/algorithms.h"

namespace paceline::engine::cpu {

struct TuningTable {
  std::string machine;                                     ///< one line
  std::map<std::string, const ConvAlgorithm*> algorithms;  ///< by key
};

/// Nothing where `text` is no whole table of algorithms that this program knows.
[[nodiscard]] std::optional<TuningTable> tuning_table_from(std::string_view text);
[[nodiscard]] std::string as_text(const TuningTable& table);

/// Whether it begins like a table, whole or not.
[[nodiscard]] bool is_tuning_table(std::string_view text);

}  // namespace paceline::engine::cpu
