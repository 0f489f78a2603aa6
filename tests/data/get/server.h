#pragma once

/// An HTTP server on this machine that misbehaves as told.

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace paceline::data {

/// What it does with one request. Requests of a file take its behaviours in turn, and the last for ever.
struct Behaviour {
  int status = 200;                   ///< 200 becomes 206 where a range is asked and `ranges`
  std::int64_t break_after = -1;      ///< bytes of the body, then the connection is closed
  bool ranges = true;                 ///< else the whole file is sent, whatever is asked
  bool silent = false;                ///< takes the request and never answers
  std::function<void()> before = {};  ///< called before the answer
};

class Server {
 public:
  Server() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    ::listen(listener_, 8);
    socklen_t length = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this] { serve(); });
  }
  ~Server() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
    for (const int connection : held_) ::close(connection);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void give(const std::string& name, std::string body, std::vector<Behaviour> behaviours = {{}}) {
    const std::lock_guard lock(mutex_);
    files_["/" + name] = {std::move(body), std::move(behaviours)};
  }
  [[nodiscard]] std::string address() const { return "http://127.0.0.1:" + std::to_string(port_); }
  /// "/name from 100": every request so far.
  [[nodiscard]] std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  struct File {
    std::string body;
    std::vector<Behaviour> behaviours;
    std::size_t next = 0;
  };

  void serve() {
    for (;;) {
      const int connection = ::accept(listener_, nullptr, nullptr);
      if (stopping_ || connection < 0) return;
      if (answer(connection))
        ::close(connection);
      else
        held_.push_back(connection);
    }
  }

  bool answer(int connection) {
    std::string request;
    char piece[4096];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const auto count = ::recv(connection, piece, sizeof piece, 0);
      if (count <= 0) return true;
      request.append(piece, static_cast<std::size_t>(count));
    }
    const auto path = request.substr(4, request.find(' ', 4) - 4);
    const auto range = request.find("Range: bytes=");
    const std::size_t from = range == std::string::npos ? 0 : std::stoul(request.substr(range + 13));
    std::string body;
    Behaviour behaviour{.status = 404};
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(path + " from " + std::to_string(from));
      if (const auto file = files_.find(path); file != files_.end()) {
        auto& [whole, behaviours, next] = file->second;
        body = whole;
        behaviour = behaviours[std::min(next++, behaviours.size() - 1)];
      }
    }
    if (behaviour.before) behaviour.before();
    if (behaviour.silent) return false;
    std::string head = "HTTP/1.1 " + std::to_string(behaviour.status) + " X\r\n";
    if (behaviour.status != 200) {
      body.clear();
    } else if (from > 0 && behaviour.ranges) {
      if (from >= body.size()) {
        head = "HTTP/1.1 416 X\r\n";
        body.clear();
      } else {
        head = "HTTP/1.1 206 X\r\nContent-Range: bytes " + std::to_string(from) + "-" +
               std::to_string(body.size() - 1) + "/" + std::to_string(body.size()) + "\r\n";
        body = body.substr(from);
      }
    }
    head += "Content-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n";
    if (behaviour.break_after >= 0) body.resize(static_cast<std::size_t>(behaviour.break_after));
    head += body;
    for (std::size_t sent = 0; sent < head.size();) {
      const auto count = ::send(connection, head.data() + sent, head.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) break;
      sent += static_cast<std::size_t>(count);
    }
    return true;
  }

  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::map<std::string, File> files_;
  std::vector<std::string> requests_;
  std::vector<int> held_;
  std::jthread thread_;
};

}  // namespace paceline::data
