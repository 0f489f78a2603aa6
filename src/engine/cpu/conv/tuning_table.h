#pragma once

/// The text format of a tuning cache (tuning_cache.h):
///
///     paceline kernels, format 1
///     MACHINE
///     ALGORITHM KEY           a line for each problem, KEY as key_of() writes it
///     end COUNT               the last line; without it the file is truncated

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

/// Nothing if `text` is damaged, truncated or names an algorithm that this program does not have.
[[nodiscard]] std::optional<TuningTable> tuning_table_from(std::string_view text);
[[nodiscard]] std::string as_text(const TuningTable& table);

/// Whether `text` begins like a table, truncated or not.
[[nodiscard]] bool is_tuning_table(std::string_view text);

}  // namespace paceline::engine::cpu
