// A server for tests.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ops/error.h"

namespace tessera {

// A server on this machine that gives each caller the next of its answers, and hangs up or stays on
// the line in silence.
class TinyServer {
 public:
  enum class Then { kHangUp, kStay };

  explicit TinyServer(std::vector<std::string> answers, Then then = Then::kHangUp)
      : answers_(std::move(answers)), then_(then) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    url_ = StrCat("http://127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this] { Serve(); });
  }
  ~TinyServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    for (const int caller : callers_) ::close(caller);
    ::close(listener_);
  }

  const std::string& url() const { return url_; }

 private:
  void Serve() {
    for (std::size_t i = 0;; ++i) {
      const int caller = ::accept(listener_, nullptr, nullptr);
      if (caller < 0) return;
      char request[4096];
      (void)!::recv(caller, request, sizeof request, 0);
      const std::string answer =
          i < answers_.size() ? answers_[i] : "HTTP/1.0 404 Not Found\r\n\r\n";
      for (std::size_t sent = 0; sent < answer.size();) {
        const auto n = ::send(caller, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) break;
        sent += static_cast<std::size_t>(n);
      }
      if (then_ == Then::kStay) {
        callers_.push_back(caller);
      } else {
        ::close(caller);
      }
    }
  }

  const std::vector<std::string> answers_;
  const Then then_;
  std::vector<int> callers_;  // that are on the line
  int listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string url_;
  std::thread thread_;
};

}  // namespace tessera
