#pragma once

// Words between two ends that share a secret. Each proves that it knows it before the other
// believes a word, and every message carries a proof that it is the next one of this connection:
// nobody without the secret can begin, add, alter, repeat or leave out one. What is said is not
// hidden.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipewright::exec {

using Message = std::vector<std::string>;

/// How two ends meet: the store says its challenge, the rank answers with one and a proof, and the
/// store with a proof of its own, or with `refusal()`.
namespace handshake {
constexpr std::size_t challenge_bytes = 24, answer_bytes = 16 + 32, verdict_bytes = 32;

/// Made anew for each connection; says at its front what it is.
std::string challenge();
bool is_challenge(const std::string& bytes);
std::string answer(const std::string& secret, const std::string& challenge);
bool is_proven(const std::string& secret, const std::string& challenge, const std::string& answer);
std::string verdict(const std::string& secret, const std::string& challenge,
                    const std::string& answer);
std::string refusal();
}  // namespace handshake

/// One end of a connection whose ends have met.
class Sealed {
 public:
  enum class End { Store, Rank };

  Sealed(const std::string& secret, const std::string& challenge, const std::string& answer,
         End own);

  /// What goes over the line for this message.
  std::string closed(const Message& message);
  /// Takes the next message from the front of what has come; nothing where it has not come whole.
  /// Throws std::runtime_error where it is not what the other end has said next.
  std::optional<Message> opened(std::string& received);

 private:
  std::string proof(bool by_store, std::uint64_t number, const std::string& body) const;

  std::string key_;
  bool is_store_;
  std::uint64_t sent_ = 0, taken_ = 0;
};

}  // namespace pipewright::exec
