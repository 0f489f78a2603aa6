#pragma once

/// "Did you mean ...": the closest known name, for errors about unknown names.

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace paceline::base {

/// The known name with the smallest edit distance (insert, delete, replace, swap of neighbours), if that is
/// at most a third of the longer length, and at least 1. Else the only known name that begins with `name`, if
/// `name` has three letters or more.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view name,
                                                      std::span<const std::string> known);

/// The end of an error sentence: "; did you mean 'x'?" or, if no name is close, "; known are a, b, c".
[[nodiscard]] std::string suggestion(std::string_view name, std::span<const std::string> known);

}  // namespace paceline::base
