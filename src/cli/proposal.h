#pragma once

/// From what was found in a folder to a recipe that trains on it, with a reason for each choice. Pure
/// functions; the same folder gives the same recipe on machines with as many cores.

#include <cstdint>
#include <string>
#include <vector>

#include "cli/data_look.h"
#include "train/options.h"

namespace paceline::cli {

/// What of the machine a choice depends on.
struct MachineLook {
  int cores = 1;
  bool has_bf16 = false;
  std::int64_t most_batch = 128;  ///< that memory holds; a power of two
};

/// A line of the recipe.
struct Choice {
  std::string key;     ///< "global-batch"
  std::string value;   ///< as TOML: "64", "\"sgd\""; empty: nothing is set, and `reason` says why
  std::string reason;  ///< sentences; several choices in a row may share the first one's
};

struct Proposal {
  std::vector<Choice> choices;
  std::vector<std::string> warnings;  ///< what the user should look at: duplicates, classes of few images
  train::Options options;  ///< model, data, validation part, batch, epochs: what the memory plan asks
  bool is_long = false;    ///< more than an hour by the count in the reason of the epochs
};

/// Floating-point operations a second and core that time is counted with where nothing was measured: what a
/// core of a notebook of 2015 reaches on convolutions. It decides between sizes of images and models, and
/// never stands for a time that was measured.
inline constexpr double kCountedFlops = 2e10;

[[nodiscard]] Proposal propose(const DataLook& look, const MachineLook& machine);

/// The recipe as text: a head that says what was found, each choice below its reason, and a short form.
/// `file`: its name, for the commands in the head.
[[nodiscard]] std::string recipe_text(const DataLook& look, const Proposal& proposal,
                                      const std::string& file);

/// What was found, in a few lines: "classes     24, each with 112 training images".
[[nodiscard]] std::vector<std::string> findings(const DataLook& look);

/// `text` as a string of TOML.
[[nodiscard]] std::string toml_string(const std::string& text);

}  // namespace paceline::cli
