#pragma once

/// Makes foreign text safe to print on a terminal: characters that would move the cursor, set colours or a
/// title, or reverse the writing direction are escaped.

#include <string>
#include <string_view>

namespace paceline::base {

/// `text` with unprintable parts escaped ("\x1b", "\u202e"): control characters, characters that change the
/// direction of writing, and bytes that are not UTF-8. Line ends and tabs stay if `keeps_lines`; else they
/// become blanks.
[[nodiscard]] std::string visible(std::string_view text, bool keeps_lines = false);

}  // namespace paceline::base
