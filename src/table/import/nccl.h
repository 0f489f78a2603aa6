#pragma once

/// Converts a line of nccl-tests' output to a row of a table, for the readers of its text and JSON.

#include <string>

#include "table/table.h"

namespace paceline::table {

struct NcclLine {
  std::string collective;    ///< "all_reduce"; "" if unknown
  std::string type;          ///< "float", "bfloat16"
  std::string bytes;         ///< as printed
  std::string seconds_us;    ///< as printed, in microseconds
  std::string algbw, busbw;  ///< as printed, GB/s; "" or "N/A" if there is none
  std::string wrong;         ///< wrong elements; "N/A" if not checked
  bool in_place = false;
  int ranks = 0, hosts = 0;  ///< 0: unknown
};

/// Errors   Error(usage): the end of a sentence about an invalid value
[[nodiscard]] Row row_of(const NcclLine& line);

/// Bytes of an element of one of NCCL's types; 0 for other words.
[[nodiscard]] int element_bytes(std::string_view type);

}  // namespace paceline::table
