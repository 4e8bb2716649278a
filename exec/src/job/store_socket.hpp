#pragma once

// Where the store of a job on one machine listens: its launcher finds the port and keeps it, on the
// loopback alone, until rank 0 has the socket.

#include <optional>

namespace pipewright::exec {

/// The launcher's.
class StoreSocket {
 public:
  /// Listens. Throws std::runtime_error where no port is free.
  StoreSocket();
  ~StoreSocket();
  StoreSocket(const StoreSocket&) = delete;
  StoreSocket& operator=(const StoreSocket&) = delete;

  int port() const { return port_; }
  /// In a child that becomes rank 0.
  void hand_on() const;

 private:
  int socket_ = -1, port_ = 0;
};

/// The one that the launcher has handed on to this process, once; nothing where it did not.
std::optional<int> socket_of_launcher();

}  // namespace pipewright::exec
