#pragma once

// Connects to processes that expect other peers: silently, with garbage, or with an answer that
// does not prove knowledge of their secret.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace pipewright::test {

/// Returns the IPv4 and IPv6 ports on which this process listens now.
inline std::set<int> ports_of(pid_t process) {
  std::set<std::string> sockets;
  std::error_code gone;
  const std::string folder = "/proc/" + std::to_string(process);
  for (const auto& file : std::filesystem::directory_iterator(folder + "/fd", gone))
    sockets.insert(std::filesystem::read_symlink(file.path(), gone).string());
  std::set<int> ports;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream lines(folder + table);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream columns(line);
      std::vector<std::string> words;
      for (std::string word; columns >> word;)
        words.push_back(word);
      const bool listens = words.size() > 9 && words[3] == "0A";
      if (listens && sockets.contains("socket:[" + words[9] + "]"))
        ports.insert(std::stoi(words[1].substr(words[1].rfind(':') + 1), nullptr, 16));
    }
  }
  return ports;
}

/// Returns -1 if no process listens on the loopback any more.
inline int connected_to(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    return socket;
  ::close(socket);
  return -1;
}

/// While it exists, connects again and again to all ports on which these processes listen.
class Uninvited {
 public:
  explicit Uninvited(std::function<std::vector<pid_t>()> processes)
      : thread_([this, processes = std::move(processes)] {
          while (!ending_) {
            for (const pid_t process : processes())
              for (const int port : ports_of(process))
                visit(port);
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
        }) {}
  ~Uninvited() {
    ending_ = true;
    thread_.join();
    for (const int socket : silent_)
      ::close(socket);
  }
  Uninvited(const Uninvited&) = delete;
  Uninvited& operator=(const Uninvited&) = delete;

  int visits() const { return visits_; }

 private:
  void visit(int port) {
    const int silent = connected_to(port), loud = connected_to(port);
    if (silent >= 0 && silent_.size() < 200)
      silent_.push_back(silent);
    else
      ::close(silent);
    if (loud < 0)
      return;
    // The garbage is as long as a proof followed by a message, or much longer.
    std::string garbage(visits_ % 2 == 0 ? 80 : 5000, '\0');
    for (char& byte : garbage) {
      random_ = random_ * 1103515245U + 12345U;
      byte = static_cast<char>(random_ >> 16);
    }
    if (::send(loud, garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
      ++visits_;
    ::close(loud);
  }

  std::vector<int> silent_;
  unsigned random_ = 7;
  std::atomic<int> visits_{0};
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace pipewright::test
