#pragma once

/// Mistakes of every rule of the catalogue, each made in a sound table that is drawn at random.

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "check/studies.h"

namespace paceline::check::mistakes {

/// A table with one mistake in it.
struct Made {
  sound::Table table;
  std::string row;  ///< the name of a row that the finding must be about; "" for one of the whole table
  std::optional<double> right;  ///< the figure, where it is unique
};

struct Mistake {
  std::string name;
  std::string rule;
  /// Nothing where the table has nothing to make it in, or it would be below the limit that docs/check.md
  /// states.
  std::function<std::optional<Made>(std::uint64_t seed)> make;
  std::set<std::string> also = {};  ///< rules whose errors follow from the same mistake
  bool is_weaker = false;           ///< not the severest finding of its rule
};

// The mistakes by what they are about, one file each.
[[nodiscard]] std::vector<Mistake> of_claims();
[[nodiscard]] std::vector<Mistake> of_scaling();
[[nodiscard]] std::vector<Mistake> of_times();
[[nodiscard]] std::vector<Mistake> of_sizes();
[[nodiscard]] std::vector<Mistake> of_bandwidth();
[[nodiscard]] std::vector<Mistake> of_quality();
[[nodiscard]] std::vector<Mistake> of_protocol();

}  // namespace paceline::check::mistakes
