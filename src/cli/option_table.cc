/// The table as a whole, in the order in which values are set.

#include <utility>

#include "cli/option_rows.h"

namespace paceline::cli {

const std::vector<Option>& options() {
  static const std::vector<Option> table = [] {
    std::vector<Option> joined;
    for (auto rows : {training_rows(), rule_rows(), launch_rows(), study_rows()})
      for (auto& row : rows) joined.push_back(std::move(row));
    return joined;
  }();
  return table;
}

}  // namespace paceline::cli
