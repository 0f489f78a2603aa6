#pragma once

/// What a page carries, as its reader gets it.

#include <string>

namespace paceline::report {

/// The other side of compressed(): by zlib, and base64 counted by hand. Fails the test where it is damaged.
[[nodiscard]] std::string restored(const std::string& letters);

/// `html` with its data as the plain JSON that they are once they are restored; the plain page has them so.
[[nodiscard]] std::string with_plain_data(const std::string& html);

}  // namespace paceline::report
