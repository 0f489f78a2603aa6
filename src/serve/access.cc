#include "serve/access.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cstdint>

#include "base/error.h"

namespace paceline::serve {
namespace {

/// "127.0.0.1:8000" -> "127.0.0.1", "[::1]:8000" -> "::1"
std::string_view without_port(std::string_view host) {
  if (host.starts_with('['))
    return host.substr(1, host.find(']') == std::string_view::npos ? 0 : host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host == "127.0.0.1";
}

std::string make_token() {
  std::array<std::uint8_t, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    base::fail(base::ErrorKind::device,
               "--token: the system provided no random numbers to make a token; give one");
  std::string token;
  for (const auto byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

bool is_same_token(std::string_view token, std::string_view given) {
  unsigned differs = token.size() == given.size() && !token.empty() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char expected = token.empty() ? '\0' : token[i % token.size()];
    differs |=
        static_cast<unsigned>(static_cast<unsigned char>(expected) ^ static_cast<unsigned char>(given[i]));
  }
  return differs == 0;
}

std::string refusal(const HttpRequest& request, std::string_view token) {
  if (token.empty()) {
    if (is_loopback(without_port(request.host))) return "";
    return "this server answers only requests to 127.0.0.1 and localhost; to reach it from elsewhere start "
           "it with --host and a token";
  }
  constexpr std::string_view kBearer = "Bearer ";
  std::string_view given = request.authorization;
  if (given.starts_with(kBearer)) {
    given.remove_prefix(kBearer.size());
  } else {
    const auto asked = request.query.find("token");
    given = asked == request.query.end() ? std::string_view() : std::string_view(asked->second);
  }
  if (is_same_token(token, given)) return "";
  return "a token is needed: append ?token=TOKEN to the address, or send 'Authorization: Bearer TOKEN'; the server "
         "printed it when it began";
}

}  // namespace paceline::serve
