#pragma once

#include <string>

namespace paceline::report {

/// `text` as a page carries it: compressed by zlib (RFC 1950, with its checksum), in base64. Every browser
/// since 2023 undoes it by itself (web/src/data/inflate.ts), Python by
/// zlib.decompress(base64.b64decode(text)).
///
/// The JSON of a study repeats itself (names of fields, cells that stand in several tables): about 30 % is
/// left of it. Cost: 10 ms for 130 kB, 0.2 s for 2 MB.
/// Errors: base::Error (device) where zlib finds no memory.
[[nodiscard]] std::string compressed(const std::string& text);

}  // namespace paceline::report
