#pragma once

/// Parses texts of the command line and of recipes. Every function throws Error(usage) whose text is the end
/// of a sentence that begins with the option's name: "must be a whole number of at least 1, got '0'".

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::base {

[[nodiscard]] std::int64_t whole_number(std::string_view text, std::int64_t least,
                                        std::int64_t most = std::numeric_limits<std::int64_t>::max());

/// The same for a number inside `whole`, as the 2 in "a:2". The error names both: "must have a whole number
/// from 1 to 9 as its `what`, got 'a:x'".
[[nodiscard]] std::int64_t whole_number_in(std::string_view whole, std::string_view what,
                                           std::string_view text, std::int64_t least, std::int64_t most);

/// The limits of a decimal; `open_below` excludes `least` itself.
struct Bounds {
  double least = 0;
  double most = std::numeric_limits<double>::infinity();
  bool open_below = false;
};
[[nodiscard]] double decimal(std::string_view text, Bounds bounds = {});

/// "true", "yes", "1", or "false", "no", "0".
[[nodiscard]] bool truth(std::string_view text);

/// The index of `text` in `names`; the error for an unknown one has the nearest name.
[[nodiscard]] std::size_t one_of(std::string_view text, std::span<const std::string> names);

/// "1,2,4" as its parts, none of which may be empty; blanks around commas are allowed.
[[nodiscard]] std::vector<std::string> parts(std::string_view text);
[[nodiscard]] std::vector<std::int64_t> whole_numbers(std::string_view text, std::int64_t least,
                                                      std::int64_t most);

/// The shortest text that parses as `value`: 0.1, 5e-04, 128.
[[nodiscard]] std::string as_text(double value);

}  // namespace paceline::base
