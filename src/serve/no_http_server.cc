/// Built if libcpp-httplib is not installed: every attempt to serve is an error.

#include "base/error.h"
#include "serve/http_server.h"

namespace paceline::serve {

class HttpServer::Library {};

bool has_http_server() { return false; }

HttpServer::HttpServer(const std::string&, int, const HttpLimits&, HttpHandler) {
  base::fail(
      base::ErrorKind::usage,
      "serve: this program was built without an HTTP library; install libcpp-httplib-dev (apt-get install "
      "libcpp-httplib-dev) and build it again");
}

HttpServer::~HttpServer() = default;
int HttpServer::port() const { return 0; }
void HttpServer::run(const std::stop_token&) {}

}  // namespace paceline::serve
