#pragma once

// The key-value store of a job that has a secret. One thread serves all clients without blocking,
// so clients that have not authenticated themselves cannot delay the others.

#include <atomic>
#include <chrono>
#include <list>
#include <map>
#include <string>
#include <thread>

#include "file_descriptor.hpp"
#include "secure_channel.hpp"

namespace pipewright::exec {

class StoreServer {
 public:
  StoreServer(FileDescriptor listening, std::string secret);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  int port() const;
  /// Returns the number of connections that were closed because their client did not know the
  /// secret.
  int rejected() const { return rejected_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Client {
    Client(FileDescriptor accepted, const std::string& secret);

    FileDescriptor socket;
    SecureChannel channel;
    std::string outgoing{};
    Message awaited{};        // keys
    Clock::time_point until;  // deadline of the handshake or of the wait
    bool closed = false;
  };

  void serve();
  void accept_clients();
  void make_room();
  void receive_from(Client& client);
  void answer(Client& client, const Message& request);
  void begin_wait(Client& client, const Message& request);
  void end_waits();
  bool has_all(const Message& keys) const;
  void reply(Client& client, const Message& message);
  void flush(Client& client);
  void close(Client& client);
  int milliseconds_to_next_deadline() const;

  const FileDescriptor listening_, wake_;
  const std::string secret_;
  std::map<std::string, std::string> values_;
  std::list<Client> clients_;  // the oldest first
  bool changed_ = false;       // a value or a wait is new
  std::atomic<int> rejected_{0};
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace pipewright::exec
