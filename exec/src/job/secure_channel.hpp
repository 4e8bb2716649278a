#pragma once

// An encrypted connection between two ends that share a secret: TLS 1.3 with a pre-shared key
// (RFC 8446), by OpenSSL's libssl. The channel has no socket: its owner moves the bytes.

#include <openssl/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::exec {

/// How long either end waits for the other to authenticate itself.
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

  /// Returns whether the peer has proven that it knows the secret.
  bool is_authenticated() const;

  /// Takes bytes from the peer, and may have some for it in turn, such as an alert. Throws
  /// WrongSecret, or std::runtime_error where they are not what the peer sends next: altered,
  /// repeated, omitted or reflected.
  void receive(std::string_view bytes);
  /// Removes the next whole message of the peer. Throws std::runtime_error where it is too long.
  std::optional<Message> next_message();

  /// The channel must be authenticated.
  void send(const Message& message);
  /// Removes and returns the bytes that are to go to the peer.
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
