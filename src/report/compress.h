#pragma once

#include <string>

namespace paceline::report {

/// Compresses `text` with zlib (RFC 1950, with its checksum) and encodes it in base64, as a page embeds it.
/// Browsers since 2023 can decompress it (web/src/data/inflate.ts); so can Python:
/// zlib.decompress(base64.b64decode(text)).
///
/// The JSON of a study is repetitive (field names, cells that are in several tables) and shrinks to about 30
/// %.
///
/// Cost     10 ms for 130 kB, 0.2 s for 2 MB
/// Errors   Error(device) when zlib finds no memory
[[nodiscard]] std::string compressed(const std::string& text);

}  // namespace paceline::report
