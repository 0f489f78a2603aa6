#pragma once

/// One request by HTTP, which libcurl makes. Its thirty libraries take milliseconds to load, so they are
/// linked to a module, paceline_curl.so, and only a process that downloads opens it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace paceline::data {

struct HttpRequest {
  std::string url;           ///< http:// or https://
  std::string certificates;  ///< the file of the certificate authorities; "": libcurl's own
  std::int64_t from = 0;     ///< the first byte wanted
  int connect_s = 0;         ///< a connection without an answer ends after this time
  int stall_s = 0;           ///< a transfer without a byte ends after this time
  std::function<bool(std::span<const std::byte>)> take;  ///< gets the next bytes; false ends the transfer
  std::function<bool()> goes_on;  ///< asked several times a second; false ends the transfer
};

struct HttpAnswer {
  enum class End { whole, no_range, no_such_address, failed };
  End end = End::whole;
  std::string reason;  ///< of an end that is not whole, in libcurl's words
  long status = 0;     ///< 200, 404, ...; 0: none came
  std::int64_t announced =
      -1;  ///< the length of the transfer in bytes, as the server gave it; -1: it did not
};

}  // namespace paceline::data

extern "C" {
/// Follows up to five redirections.
///
/// Errors   in `answer`; the functions of `request` must not throw
/// Threads  any
void paceline_http_get(const paceline::data::HttpRequest& request, paceline::data::HttpAnswer& answer);
}
