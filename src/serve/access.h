#pragma once

/// Who may ask. On the loopback address everybody of this machine, but no page of another site that a browser
/// was led to; elsewhere who has the token.

#include <string>
#include <string_view>

#include "serve/http_server.h"

namespace paceline::serve {

/// Whether `host` is an address that this machine alone reaches: "127.0.0.1", "::1", "localhost".
[[nodiscard]] bool is_loopback(std::string_view host);

/// 32 hexadecimal digits from the system's random numbers. Errors   Error(device): it gave none
[[nodiscard]] std::string make_token();

/// Whether two texts are the same, in a time that depends on the length of `given` alone: who measures it
/// learns nothing of `token`.
[[nodiscard]] bool is_same_token(std::string_view token, std::string_view given);

/// Why the request is refused, a sentence; "": it is not. `token`: "" on the loopback address, where the name
/// that the request calls this machine by must be one of the loopback's. Else it must come as "Authorization:
/// Bearer TOKEN" or as ?token=TOKEN.
[[nodiscard]] std::string refusal(const HttpRequest& request, std::string_view token);

}  // namespace paceline::serve
