/// The table as a whole, in the order in which values are set.

#include "cli/options/option_rows.h"

namespace paceline::cli {

const std::vector<Option>& options() {
  static const std::vector<Option> table = [] {
    std::vector<Option> joined;
    for (const auto rows : {training_rows(), rule_rows(), launch_rows(), study_rows()})
      joined.insert(joined.end(), rows.begin(), rows.end());
    return joined;
  }();
  return table;
}

}  // namespace paceline::cli
