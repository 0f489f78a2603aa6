#pragma once

/// Text of others on a terminal: what would move the cursor, set colours or a title, or turn the writing
/// around is shown, not obeyed.

#include <string>
#include <string_view>

namespace paceline::base {

/// `text` with everything escaped ("\x1b", "\u202e") that no reader sees as a letter: control characters,
/// those that change the direction of writing, and bytes that are no UTF-8. Line ends and tabs stay with
/// `keeps_lines`; else they become blanks.
[[nodiscard]] std::string visible(std::string_view text, bool keeps_lines = false);

}  // namespace paceline::base
