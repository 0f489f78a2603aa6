#pragma once

/// Quotes words for command lines that users copy into a shell.

#include <string>

namespace paceline::base {

/// `word` in a form that a shell reads as one word: quoted if it contains characters with a meaning to the
/// shell.
[[nodiscard]] std::string shell_word(const std::string& word);

}  // namespace paceline::base
