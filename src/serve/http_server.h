#pragma once

/// An HTTP server around Debian's libcpp-httplib. That loads the libraries of TLS and Brotli, so it is linked
/// to a module, paceline_http.so (http_module.cc), and only a process that serves opens it.
///
/// It accepts GET and HEAD, one request per connection, serves no ranges, and trusts nobody: the size of
/// requests, the time to send them, the time to receive answers, and the number of connections are limited.

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace paceline::serve {

struct HttpRequest {
  std::string path;                          ///< decoded: "/run/a b"
  std::map<std::string, std::string> query;  ///< decoded; the first value of a repeated name
  std::string host;                          ///< the header, "127.0.0.1:8000"; "" if missing, also below
  std::string authorization;
  std::string last_event_id;
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;  ///< nullptr: empty
  std::vector<std::pair<std::string, std::string>> headers;
  /// If set, replaces the body: called repeatedly for the next text to send ("" sends nothing), until it
  /// returns nothing or the client is gone. It may wait for about a second. Destroyed when the connection
  /// ends.
  std::function<std::optional<std::string>()> stream;
};

/// Called by the threads of all connections at once. An exception becomes an answer 500.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

struct HttpLimits {
  int connections = 160;                      ///< at once; further ones are answered 503
  std::size_t request_bytes = 16384;          ///< of request line and headers
  std::chrono::milliseconds to_ask{10'000};   ///< for receiving a whole request
  std::chrono::milliseconds to_take{10'000};  ///< for the client to accept more of the answer
  /// For a whole answer, including streams. A client of a stream reconnects (Last-Event-ID).
  std::chrono::milliseconds to_end{15 * 60'000};
};

class HttpServer {
 public:
  virtual ~HttpServer() = default;
  [[nodiscard]] virtual int port() const = 0;
  /// Serves until `stop` is requested and all connections have ended, which takes some seconds at most.
  ///
  /// Threads  one for each connection
  virtual void run(const std::stop_token& stop) = 0;
};

/// Whether the module is there: it was built where libcpp-httplib was installed.
[[nodiscard]] bool has_http_server();

/// Listens on `port` of `host`; 0: any free port.
///
/// Errors   Error(usage): the module or its library is missing (with what to install), or the address is not
///          available, with the reason
[[nodiscard]] std::unique_ptr<HttpServer> open_http_server(const std::string& host, int port,
                                                           const HttpLimits& limits, HttpHandler handler);

}  // namespace paceline::serve

extern "C" {
/// The module's function. The caller owns the server; nullptr: it cannot listen there, and errno says why.
paceline::serve::HttpServer* paceline_open_http(const std::string& host, int port,
                                                const paceline::serve::HttpLimits& limits,
                                                paceline::serve::HttpHandler handler);
}
