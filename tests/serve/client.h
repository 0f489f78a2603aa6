#pragma once

/// A client of a few lines, for servers that are to be treated badly.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>

namespace paceline::serve {

/// One connection to 127.0.0.1.
class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    is_connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] bool is_connected() const { return is_connected_; }
  bool send(std::string_view text) const {
    while (!text.empty()) {
      const auto sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  bool get(std::string_view target, std::string_view more = "Host: localhost\r\n") const {
    return send(fmt::format("GET {} HTTP/1.1\r\n{}\r\n", target, more));
  }
  /// Reads until `text` is there, the server ends the connection, or 20 s have passed.
  const std::string& read_until(std::string_view text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!has_ended_ && (text.empty() || got_.find(text) == std::string::npos) &&
           std::chrono::steady_clock::now() < end) {
      pollfd look{.fd = socket_, .events = POLLIN, .revents = 0};
      if (::poll(&look, 1, 1000) <= 0) continue;
      char buffer[65536];
      const auto count = ::recv(socket_, buffer, sizeof buffer, 0);
      if (count <= 0)
        has_ended_ = true;
      else
        got_.append(buffer, static_cast<std::size_t>(count));
    }
    return got_;
  }
  const std::string& read_all() { return read_until(""); }
  [[nodiscard]] bool has_ended() const { return has_ended_; }

 private:
  int socket_;
  bool is_connected_ = false, has_ended_ = false;
  std::string got_;
};

/// The whole answer to a GET.
inline std::string answer(int port, std::string_view target, std::string_view more = "Host: localhost\r\n") {
  Client client(port);
  client.get(target, more);
  return client.read_all();
}
inline int status_of(const std::string& answer) {
  return answer.size() > 12 ? std::atoi(answer.c_str() + 9) : 0;
}
inline std::string body_of(const std::string& answer) {
  const auto at = answer.find("\r\n\r\n");
  return at == std::string::npos ? "" : answer.substr(at + 4);
}

}  // namespace paceline::serve
