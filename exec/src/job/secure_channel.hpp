#pragma once

// An encrypted connection between two ends that share a secret: TLS 1.3 with a pre-shared key (RFC
// 8446), by OpenSSL's libssl. The channel has no socket: its owner moves the bytes.

#include <openssl/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::exec {

/// The time for which either end waits for the other to authenticate itself.
constexpr std::chrono::seconds handshake_limit{5};

/// A request to the job's store, or its answer.
using Message = std::vector<std::string>;

/// The peer has rejected this end's key.
class WrongSecret : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class SecureChannel {
 public:
  enum class Role { Server, Client };

  SecureChannel(Role role, const std::string& secret);
  SecureChannel(const SecureChannel&) = delete;
  SecureChannel& operator=(const SecureChannel&) = delete;

  /// Returns true if the peer has proven that it knows the secret.
  bool is_authenticated() const;

  /// Processes bytes from the peer, which may produce outgoing bytes, such as an alert. Throws
  /// WrongSecret, or std::runtime_error if they are not the peer's next bytes: altered, repeated,
  /// omitted or reflected.
  void receive(std::string_view bytes);
  /// Removes and returns the next complete message of the peer. Throws std::runtime_error if it is
  /// too long.
  std::optional<Message> next_message();

  /// The channel must be authenticated.
  void send(const Message& message);
  /// Removes and returns the bytes that must be sent to the peer.
  std::string take_outgoing();

 private:
  struct Free {
    void operator()(SSL* ssl) const;
  };

  const std::string key_;
  const std::unique_ptr<SSL, Free> ssl_;
  std::string received_;  // decrypted
};

}  // namespace pipewright::exec
