#pragma once

/// Words of command lines that people copy into a shell.

#include <string>

namespace paceline::base {

/// `word` as a shell takes it for one word, whatever is in it: in quotes where a letter of it means something
/// there.
[[nodiscard]] std::string shell_word(const std::string& word);

}  // namespace paceline::base
