#pragma once

/// Makes the pages of `serve` besides reports: the list of runs, and errors.

#include <span>
#include <string>

#include "serve/run_book.h"

namespace paceline::serve {

/// `text` escaped for HTML.
[[nodiscard]] std::string html_text(std::string_view text);
/// `text` escaped for a URL: everything but letters, digits and "-._~/" as bytes, %20.
[[nodiscard]] std::string url_text(std::string_view text);

/// `suffix`: appended to links, "?token=..." or "". `now`: UTC, seconds since 1970.
[[nodiscard]] std::string list_page(std::span<const Run> runs, const std::string& directory,
                                    const std::string& suffix, double now);

/// The report page in the form that is served: it may connect to this server, and knows the address of the
/// run's events.
///
/// `events`: "/events?run=...", "" if there are none
[[nodiscard]] std::string served_page(std::string page, const std::string& events);

}  // namespace paceline::serve
