#pragma once

/// The SHA-256 that a record's file carries, so that a damaged one is noticed and not taken for a
/// measurement: its last key, `sha256`, over the whole text with the 64 digits taken as zeros. The second
/// key, `checksum`, says that it is to be there: no single damage makes a record one without a sum.
///
/// Pure functions. Records of versions before have neither and are read as they are.

#include <string>

namespace paceline::measure {

/// `text`, a record as to_json() gives it, with both keys.
[[nodiscard]] std::string with_checksum(std::string text);

/// Requires of a text that has one of the keys, where with_checksum() puts them, that its sum is right.
/// Errors   Error(data) that begins with `where`
void require_checksum(const std::string& text, const std::string& where);

}  // namespace paceline::measure
