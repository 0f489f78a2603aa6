#pragma once

/// Decides who may send requests. On the loopback address: every user of this machine, but no web page of
/// another site. On other addresses: whoever has the token.

#include <string>
#include <string_view>

#include "serve/http_server.h"

namespace paceline::serve {

/// Whether only this machine can reach the address `host`: "127.0.0.1", "::1", "localhost".
[[nodiscard]] bool is_loopback(std::string_view host);

/// 32 hexadecimal digits from the system's random numbers.
///
/// Errors   Error(device): the system provides none
[[nodiscard]] std::string make_token();

/// Whether two texts are equal, in a time that depends only on the length of `given`, so that timing reveals
/// nothing about `token`.
[[nodiscard]] bool is_same_token(std::string_view token, std::string_view given);

/// Why the request is refused, as a sentence; "" if it is not. With `token` "" (on the loopback address), the
/// request's Host must be a loopback name. Otherwise the token must come as "Authorization: Bearer TOKEN" or
/// as ?token=TOKEN.
[[nodiscard]] std::string refusal(const HttpRequest& request, std::string_view token);

}  // namespace paceline::serve
