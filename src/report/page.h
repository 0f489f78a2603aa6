#pragma once

/// The report page, embedded in the program: web/dist/index.html as built by `npm run build`, or
/// fallback.html if it was never built. embed_page.cmake makes the object file; both pages have the same
/// place for the data.

#include <string>

namespace paceline::report {

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
/// (compress.h).
[[nodiscard]] std::string page_of(const std::string& json);

}  // namespace paceline::report
