#pragma once

/// JSON files that fit into memory, and what of them may be missing.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace paceline::table {

/// The whole file. Errors: Error(data) with the file, the byte and what was wrong; or what it is larger than.
[[nodiscard]] nlohmann::json read_json(const std::filesystem::path& path,
                                       std::size_t most_bytes = std::size_t{256} << 20);

/// The member as text: a text without blanks at its ends, a number as it would be printed; nothing where
/// there is none, or it is null or something else.
[[nodiscard]] std::optional<std::string> text_at(const nlohmann::json& object, const char* key);
/// The member as a number, also where it is a text that is one; nothing for "nan".
[[nodiscard]] std::optional<double> number_at(const nlohmann::json& object, const char* key);
/// The member, or an empty one of null.
[[nodiscard]] const nlohmann::json& member(const nlohmann::json& object, const char* key);

}  // namespace paceline::table
