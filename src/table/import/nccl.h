#pragma once

/// One line of nccl-tests as a row of a table: both readers of its outputs make them here.

#include <string>

#include "table/table.h"

namespace paceline::table {

struct NcclLine {
  std::string collective;    ///< "all_reduce"; "" where it is not said
  std::string type;          ///< "float", "bfloat16"
  std::string bytes;         ///< as printed
  std::string seconds_us;    ///< as printed, in microseconds
  std::string algbw, busbw;  ///< as printed, GB/s; "" or "N/A" where there is none
  std::string wrong;         ///< elements; "N/A" where nobody looked
  bool in_place = false;
  int ranks = 0, hosts = 0;  ///< 0: not said
};

/// Errors   Error(usage): the end of a sentence about the value that is none
[[nodiscard]] Row row_of(const NcclLine& line);

/// Bytes of an element of NCCL's types; 0 for another word.
[[nodiscard]] int element_bytes(std::string_view type);

}  // namespace paceline::table
