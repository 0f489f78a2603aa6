#pragma once

/// Reads small JSON files, and their optional members.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace paceline::table {

/// Reads the whole file.
///
/// Errors   Error(data) with the file, the byte and what is wrong, or that it is larger than `most_bytes`
[[nodiscard]] nlohmann::json read_json(const std::filesystem::path& path,
                                       std::size_t most_bytes = std::size_t{256} << 20);

/// The member as text: a string without blanks at its ends, or a number as it would be printed; nothing if it
/// is missing, null or of another type.
[[nodiscard]] std::optional<std::string> text_at(const nlohmann::json& object, const char* key);
/// The member as a number, also if it is a string that contains one; nothing for "nan".
[[nodiscard]] std::optional<double> number_at(const nlohmann::json& object, const char* key);
/// The member, or null if there is none.
[[nodiscard]] const nlohmann::json& member(const nlohmann::json& object, const char* key);

}  // namespace paceline::table
