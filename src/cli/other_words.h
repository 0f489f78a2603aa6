#pragma once

/// Names that options have elsewhere (PyTorch's scripts, Keras, Horovod, Lightning, Slurm), with what to
/// write here: for those who type what they are used to.

#include <optional>
#include <string>
#include <string_view>

namespace paceline::cli {

/// The end of a sentence that begins with the option as it was typed, "is not an option here: ..."; nothing
/// for a name that is not known from elsewhere. `prefix` stands before the names of options: "--", or nothing
/// in a recipe. docs/coming-from.md has the words that are no options.
[[nodiscard]] std::optional<std::string> hint_for_other_word(std::string_view name, std::string_view prefix);

}  // namespace paceline::cli
