#pragma once

/// The report page, embedded in the program: web/dist/index.html as `npm run build` left it, or fallback.html
/// when it was never built. embed_page.cmake makes the object; both have the same place for the data.

#include <string>

namespace paceline::report {

/// The whole page, with an empty `<script id="paceline-data" type="application/json"></script>`.
[[nodiscard]] const std::string& page_template();
/// Whether that is the built page (and not the small one that stands in for it).
[[nodiscard]] bool page_is_built();

/// `page` with `json` inside that script. Every `<` of the JSON becomes \u003c, so that no text of a report
/// can close the script.
///
/// Errors   a page without that script is a bug: expects()
[[nodiscard]] std::string fill_page(const std::string& page, const std::string& json);

/// The page that shows the report of `json` (to_json of a Document). The built page carries it packed
/// (pack.h).
[[nodiscard]] std::string page_of(const std::string& json);

}  // namespace paceline::report
