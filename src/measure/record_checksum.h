#pragma once

/// Writes and checks the SHA-256 in a record's file, so that a damaged record is detected. It is the last
/// key, `sha256`, over the whole text with the 64 digits replaced by zeros. The second key, `checksum`, says
/// that there is one, so that no single damage makes a record look like one without a checksum.
///
/// Pure functions. Older records have neither key and are read without a check.

#include <string>

namespace paceline::measure {

/// `text`, a record from to_json(), with both keys added.
[[nodiscard]] std::string with_checksum(std::string text);

/// Checks the checksum of a text that has one of the keys where with_checksum() puts them.
///
/// Errors   Error(data) that begins with `where`
void require_checksum(const std::string& text, const std::string& where);

}  // namespace paceline::measure
