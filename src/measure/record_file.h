#pragma once

/// Adds a SHA-256 to the text of a record (record.h) and checks it, so that a damaged record is detected.
///
/// The last key of the JSON object, `sha256`, holds the SHA-256 of the whole text, computed with the key's
/// own 64 digits set to zero. The second key of the object, `checksum`, says that the record has a `sha256`.
/// Damage at one place cannot remove both keys, so a damaged record is never taken for one without checksum.
///
/// Pure functions of the text. Records of older programs have neither key.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace paceline::measure {

/// Refuses the file that `option` ("--html") names if its directory does not exist, or if the existing file
/// looks like an input: a record, a checkpoint, events, a recipe, or a file that is no text (images,
/// archives). Older outputs are replaced. So a typing error overwrites no input.
///
/// Errors   Error(data): option, file, what the existing file is
void require_output(const std::filesystem::path& file, std::string_view option);

/// More bytes than any record has.
inline constexpr std::uintmax_t kMostRecordBytes = std::uintmax_t{1} << 30;
/// The text of a file that should be a record.
///
/// Errors   Error(data): it cannot be read, or has more than kMostRecordBytes
[[nodiscard]] std::string record_text(const std::filesystem::path& file);

/// `text`, a record from to_json(), with both keys added.
[[nodiscard]] std::string with_checksum(std::string text);

/// True if the record has the key `checksum`, however its JSON is laid out.
[[nodiscard]] bool says_it_has_checksum(std::string_view text);

/// Checks the SHA-256 of a record's text. A text without both keys passes unchecked. One with `checksum` that
/// another program has laid out anew is refused: its bytes are not the ones that were summed.
///
/// Errors   Error(data) that begins with `where` (the file): the SHA-256 is wrong, or is missing although
///          `checksum` is there
void require_checksum(const std::string& text, const std::string& where);

}  // namespace paceline::measure
