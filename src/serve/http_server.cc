#include "serve/http_server.h"

#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/shared_library.h"

namespace paceline::serve {
namespace {

constexpr base::Module kHttp{.kind = base::ErrorKind::usage,
                             .library = "serve",
                             .file = "paceline_http.so",
                             .entry = "paceline_open_http",
                             .built_with = "libcpp-httplib-dev",
                             .remedy = "install cpp-httplib (Debian: apt-get install libcpp-httplib0.11)",
                             .absent =
                                 "this program was built where libcpp-httplib-dev was not installed, or was "
                                 "copied without it; install that and build again (./x build), or copy it "
                                 "to the same folder"};

}  // namespace

bool has_http_server() { return base::is_there(base::module_path(kHttp)); }

std::unique_ptr<HttpServer> open_http_server(const std::string& host, int port, const HttpLimits& limits,
                                             HttpHandler handler) {
  const auto open = reinterpret_cast<decltype(&paceline_open_http)>(base::open_module(kHttp));
  std::unique_ptr<HttpServer> server(open(host, port, limits, std::move(handler)));
  if (server == nullptr)
    base::fail(
        base::ErrorKind::usage,
        "--host {} --port {}: the server cannot listen there: {}; give another port, or 0 for any that is "
        "free",
        host, port, std::generic_category().message(errno));
  return server;
}

}  // namespace paceline::serve
