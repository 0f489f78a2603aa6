#pragma once

/// The report page, embedded in the program: web/dist/index.html as built by `npm run build`, or
/// fallback.html if it was never built. embed_page.cmake makes the object file; both pages have the same
/// place for the data.

#include <string>
#include <string_view>

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

/// RFC 4648, with its padding.
[[nodiscard]] std::string base64(std::string_view bytes);

/// The whole page, with an empty `<script id="paceline-data" type="application/json"></script>`.
[[nodiscard]] const std::string& page_template();
/// Whether it is the built page, not the fallback.
[[nodiscard]] bool page_is_built();

/// `page` with `json` inside that script. Every `<` of the JSON becomes \u003c, so that no text of a report
/// can close the script.
///
/// Requires  `page` has that script
[[nodiscard]] std::string fill_page(const std::string& page, const std::string& json);

/// The page that shows the report `json` (to_json of a Document). The built page contains it compressed
/// (see below).
[[nodiscard]] std::string page_of(const std::string& json);

}  // namespace paceline::report
