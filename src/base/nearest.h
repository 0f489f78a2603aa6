#pragma once

/// "Did you mean ...": the closest of the known names, for every error about an unknown one.

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace paceline::base {

/// The known name with the smallest edit distance (insert, delete, replace, swap of neighbours), if it is
/// close enough to be meant: at most a third of the longer length, at least 1. Else the only one that begins
/// with `name`, if that has three letters or more.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view name,
                                                      std::span<const std::string> known);

/// "; did you mean 'x'?" or, with nothing close, "; known are a, b, c": the end of an error sentence.
[[nodiscard]] std::string suggestion(std::string_view name, std::span<const std::string> known);

}  // namespace paceline::base
