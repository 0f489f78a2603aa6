#pragma once

/// Turns what was found in a folder into a recipe that trains on it, with a reason for each choice. Pure
/// functions: the same folder gives the same recipe on machines with equally many cores.

#include <cstdint>
#include <string>
#include <vector>

#include "init/outline.h"
#include "train/given/options.h"

namespace paceline::init {

/// A line of the recipe.
struct Choice {
  std::string key;     ///< "global-batch"
  std::string value;   ///< as TOML: "64", "\"sgd\""; empty: nothing is set, and `reason` says why
  std::string reason;  ///< sentences; consecutive choices may share the first one's
};

struct Proposal {
  std::vector<Choice> choices;
  std::vector<std::string> warnings;  ///< for the user to check: duplicates, classes with few images
  train::Options options;             ///< model, data, validation part, batch, epochs: for the memory plan
  bool is_long = false;               ///< more than an hour, by the estimate in the reason for the epochs
};

[[nodiscard]] Proposal propose(const DataFacts& facts, const MachineFacts& machine,
                               const GivenModel& given = {});

/// The recipe as text: a head with the findings, each choice below its reason, and a short form. `file`: its
/// name, for the commands in the head.
[[nodiscard]] std::string recipe_text(const DataFacts& facts, const Proposal& proposal,
                                      const std::string& file);

/// The findings in a few lines: "classes     24, each with 112 training images".
[[nodiscard]] std::vector<std::string> findings(const DataFacts& facts);

/// `text` as a string of TOML.
[[nodiscard]] std::string toml_string(const std::string& text);

}  // namespace paceline::init
