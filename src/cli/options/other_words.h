#pragma once

/// Translates names of options in other programs (PyTorch's scripts, Keras, Horovod, Lightning, Slurm) for
/// users who type the names that they know.

#include <optional>
#include <string>
#include <string_view>

namespace paceline::cli {

/// The end of a sentence that begins with the typed option, "is not an option here: ..."; nothing for an
/// unknown name. `prefix` stands before the names of options: "--", or nothing in a recipe.
/// docs/coming-from.md has words that are no options.
[[nodiscard]] std::optional<std::string> hint_for_other_word(std::string_view name, std::string_view prefix);

}  // namespace paceline::cli
