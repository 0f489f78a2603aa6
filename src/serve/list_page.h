#pragma once

/// The pages of `serve` that are no report: the list of runs, and what is wrong with a request.

#include <span>
#include <string>

#include "serve/run_book.h"

namespace paceline::serve {

/// `text` with everything escaped that means something in HTML.
[[nodiscard]] std::string html_text(std::string_view text);
/// As a part of an address: everything but letters, digits and "-._~/" by its bytes, %20.
[[nodiscard]] std::string url_text(std::string_view text);

/// `suffix`: what links carry besides, "?token=..." or "". `now`: UTC, seconds since 1970.
[[nodiscard]] std::string list_page(std::span<const Run> runs, const std::string& directory,
                                    const std::string& suffix, double now);

/// The report page as it is served: it may ask this server, and knows where a run's events are.
///
/// `events`: "/events?run=...", "" where there are none
[[nodiscard]] std::string served_page(std::string page, const std::string& events);

}  // namespace paceline::serve
