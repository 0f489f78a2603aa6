/// The module paceline_http.so: all that calls the HTTP library. It gives the library's server our limits and
/// converts between its types and ours.

#include <httplib.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "serve/http_server.h"

namespace paceline::serve {
namespace {

using std::chrono::milliseconds;

bool is_ready(int socket, short what, milliseconds longest) {
  pollfd look{.fd = socket, .events = what, .revents = 0};
  const auto wait = static_cast<int>(std::clamp<std::int64_t>(longest.count(), 0, 1 << 30));
  int ready = 0;
  do ready = ::poll(&look, 1, wait);
  while (ready < 0 && errno == EINTR);
  return ready > 0;
}

/// Removes the lines of the header Range: ranges are not served, and the library would read them by a
/// recursive expression, for which a small stack does not suffice, before anybody has asked for the token.
void remove_ranges(std::string& head) {
  constexpr std::string_view kName = "range:";
  std::string kept;
  for (std::size_t begin = 0; begin < head.size();) {
    const auto end = std::min(head.find('\n', begin), head.size() - 1) + 1;
    if (::strncasecmp(head.c_str() + begin, kName.data(), kName.size()) != 0)
      kept.append(head, begin, end - begin);
    begin = end;
  }
  head = std::move(kept);
}

/// One connection. The library's own reads start a new timeout with every byte, so a slow client could hold a
/// thread for hours; here time and size of the whole request are limited.
class Connection : public httplib::Stream {
 public:
  Connection(int socket, const HttpLimits& limits)
      : socket_(socket), limits_(limits), began_(base::Clock::now()) {}

  [[nodiscard]] bool is_readable() const override {
    return begin_ < head_.size() || is_ready(socket_, POLLIN, ask_left());
  }
  [[nodiscard]] bool is_writable() const override {
    return take_left() > milliseconds(0) && is_ready(socket_, POLLOUT, take_left());
  }

  /// Gives the head of the request alone, since no request here needs a body.
  ssize_t read(char* bytes, std::size_t size) override {
    if (!has_head_) read_head();
    if (begin_ == head_.size()) return -1;
    const auto count = std::min(size, head_.size() - begin_);
    std::copy_n(head_.data() + begin_, count, bytes);
    begin_ += count;
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* bytes, std::size_t size) override {
    if (!is_writable()) return -1;
    return ::send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  // Not used here.
  void get_remote_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  void get_local_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  [[nodiscard]] int socket() const override { return socket_; }

  /// Ends the connection in such a way that the client gets the answer even while it is still sending: unread
  /// bytes would make the system discard what was sent.
  void close() {
    constexpr milliseconds kLonger{200};
    constexpr int kMostReads = 16;
    ::shutdown(socket_, SHUT_WR);
    for (int i = 0; i < kMostReads && is_ready(socket_, POLLIN, kLonger); ++i)
      if (::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT) <= 0) break;
    ::close(socket_);
  }

 private:
  [[nodiscard]] milliseconds since_begin() const {
    return std::chrono::duration_cast<milliseconds>(base::Clock::now() - began_);
  }
  [[nodiscard]] milliseconds ask_left() const { return limits_.to_ask - since_begin(); }
  [[nodiscard]] milliseconds take_left() const {
    return std::min(limits_.to_take, limits_.to_end - since_begin());
  }

  void read_head() {
    has_head_ = true;
    while (head_.find("\n\r\n") == std::string::npos && fill()) {
    }
    remove_ranges(head_);
  }

  bool fill() {
    if (head_.size() >= limits_.request_bytes || ask_left() <= milliseconds(0) ||
        !is_ready(socket_, POLLIN, ask_left()))
      return false;
    const auto got =
        ::recv(socket_, buffer_.data(), std::min(buffer_.size(), limits_.request_bytes - head_.size()), 0);
    if (got <= 0) return false;
    head_.append(buffer_.data(), static_cast<std::size_t>(got));
    return true;
  }

  const int socket_;
  const HttpLimits& limits_;
  const base::TimePoint began_;
  std::array<char, 4096> buffer_;
  bool has_head_ = false;
  std::string head_;       ///< request line and headers
  std::size_t begin_ = 0;  ///< of what the library has not read of it
};

/// A thread for each connection, so that streams, which mostly wait, do not block others. Above the limit,
/// the accepting thread serves the connection itself: Guarded refuses it.
class ThreadPerConnection : public httplib::TaskQueue {
 public:
  explicit ThreadPerConnection(int most) : most_(most) {}

  void enqueue(std::function<void()> serve) override {
    {
      const std::lock_guard lock(mutex_);
      if (running_ >= most_) return refuse(serve);
      ++running_;
    }
    try {
      std::thread([this, serve] {
        serve();
        leave();
      }).detach();
    } catch (const std::system_error&) {  // the system has no thread to spare
      refuse(serve);
      leave();
    }
  }
  void shutdown() override {
    std::unique_lock lock(mutex_);
    left_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  static void refuse(const std::function<void()>& serve) { serve(); }
  void leave() {
    const std::lock_guard lock(mutex_);
    --running_;
    left_.notify_all();
  }

  const int most_;
  std::mutex mutex_;
  std::condition_variable left_;
  int running_ = 0;
};

HttpRequest ours(const httplib::Request& request) {
  HttpRequest asked{.path = request.path,
                    .host = request.get_header_value("Host"),
                    .authorization = request.get_header_value("Authorization"),
                    .last_event_id = request.get_header_value("Last-Event-ID")};
  for (const auto& [name, value] : request.params) asked.query.try_emplace(name, value);
  return asked;
}

void give(httplib::Response& response, HttpResponse answer) {
  response.status = answer.status;
  response.set_header("Accept-Ranges", "none");
  for (const auto& [name, value] : answer.headers) response.set_header(name.c_str(), value);
  if (answer.stream) {
    // Sent without a length, so uncompressed and unchunked: the end of the connection ends it.
    response.set_content_provider(answer.type,
                                  [stream = std::move(answer.stream)](std::size_t, httplib::DataSink& sink) {
                                    const auto text = stream();
                                    if (!text) sink.done();
                                    return !text || text->empty() || sink.write(text->data(), text->size());
                                  });
    return;
  }
  if (!answer.body || answer.body->empty()) return response.set_content("", answer.type);
  // A provider avoids a copy for each client and the time for compression.
  const auto body = answer.body;
  response.set_content_provider(
      body->size(), answer.type, [body](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
        constexpr std::size_t kPiece = 65536;
        if (offset >= body->size()) return false;  // a range beyond the body
        return sink.write(body->data() + offset, std::min({length, kPiece, body->size() - offset}));
      });
}

class Library : public HttpServer, private httplib::Server {
 public:
  Library(const std::string& host, int port, const HttpLimits& limits, HttpHandler handler)
      : limits_(limits), handler_(std::move(handler)) {
    new_task_queue = [this] { return new ThreadPerConnection(limits_.connections); };
    // This runs before the library itself looks at paths, bodies or ranges.
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response);
      return HandlerResponse::Handled;
    });
    // Without the library's SO_REUSEPORT, with which a second server would silently share the port.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    port_ = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
  }

  /// -1: it does not listen.
  [[nodiscard]] int port() const override { return port_; }

  void run(const std::stop_token& stop) override {
    accepting_ = std::this_thread::get_id();
    std::atomic<bool> over = false;
    // The library's stop() has no effect before its server runs, but the request to stop may come earlier.
    const std::jthread watch([&] {
      while (!over) {
        if (stop.stop_requested()) this->stop();
        std::this_thread::sleep_for(milliseconds(20));
      }
    });
    listen_after_bind();
    over = true;
  }

 private:
  void answer(const httplib::Request& request, httplib::Response& response) {
    if (request.method != "GET" && request.method != "HEAD") {
      return give(response,
                  {.status = 405,
                   .body = std::make_shared<const std::string>("only GET and HEAD are answered here\n"),
                   .headers = {{"Allow", "GET, HEAD"}}});
    }
    try {
      give(response, handler_(ours(request)));
    } catch (const std::exception& error) {
      give(response,
           {.status = 500, .body = std::make_shared<const std::string>(std::string(error.what()) + '\n')});
    }
  }

  bool process_and_close_socket(socket_t socket) override {
    if (std::this_thread::get_id() == accepting_) {
      constexpr std::string_view kBusy =
          "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
      [[maybe_unused]] const auto sent =
          ::send(socket, kBusy.data(), kBusy.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      ::close(socket);
      return true;
    }
    Connection connection(socket, limits_);
    bool is_closed = false;
    const bool is_served = process_request(connection, true, is_closed, nullptr);
    connection.close();
    return is_served;
  }

  const HttpLimits limits_;
  const HttpHandler handler_;
  int port_ = -1;
  std::thread::id accepting_;
};

}  // namespace
}  // namespace paceline::serve

paceline::serve::HttpServer* paceline_open_http(const std::string& host, int port,
                                                const paceline::serve::HttpLimits& limits,
                                                paceline::serve::HttpHandler handler) {
  auto server = std::make_unique<paceline::serve::Library>(host, port, limits, std::move(handler));
  const int reason = errno;
  if (server->port() >= 0) return server.release();
  server.reset();
  errno = reason;
  return nullptr;
}
