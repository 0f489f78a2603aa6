#pragma once

/// An HTTP server, without the library that does it: Debian's libcpp-httplib, which http_server.cc alone
/// includes. Where it was not there at build time, no_http_server.cc says what to install.
///
/// It takes GET and HEAD, one request a connection, and trusts nobody: requests have a size and a time in
/// which they must have come, answers a time in which they must be taken, connections a number.

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
  std::map<std::string, std::string> query;  ///< decoded; of a repeated name the first
  std::string host;                          ///< the header, "127.0.0.1:8000"; "" without one, as below
  std::string authorization;
  std::string last_event_id;
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;  ///< nullptr: empty
  std::vector<std::pair<std::string, std::string>> headers;
  /// Where it is set, instead of a body: called again and again for what is to be sent, until it returns
  /// nothing or the client is gone. Waits itself, at most for about a second; "" sends nothing. Dropped when
  /// the connection ends.
  std::function<std::optional<std::string>()> stream;
};

/// Called by the threads of all connections at once. What it throws becomes an answer 500.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

struct HttpLimits {
  int connections = 160;                      ///< at once; one more is answered 503
  std::size_t request_bytes = 16384;          ///< of request line and headers
  std::chrono::milliseconds to_ask{10'000};   ///< in which a whole request must have come
  std::chrono::milliseconds to_take{10'000};  ///< in which a client must take something of the answer
  /// In which an answer, a stream too, must be over. A client of a stream comes again (Last-Event-ID).
  std::chrono::milliseconds to_end{15 * 60'000};
};

/// Whether this program was built with the library.
[[nodiscard]] bool has_http_server();

class HttpServer {
 public:
  /// Listens on `port` of `host`, 0: any. Errors   Error(usage): without the library, what to install; an
  /// address that cannot be had, with the reason
  HttpServer(const std::string& host, int port, const HttpLimits& limits, HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] int port() const;
  /// Serves until `stop` is requested and all connections have ended: some seconds at most.
  /// Threads   one for each connection
  void run(const std::stop_token& stop);

 private:
  class Library;
  std::unique_ptr<Library> library_;
};

}  // namespace paceline::serve
