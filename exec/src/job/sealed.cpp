#include "sealed.hpp"

#include <stdexcept>

#include "sha256.hpp"

namespace pipewright::exec {
namespace {

const std::string first_letters = "PWSTORE1";
constexpr std::size_t nonce_bytes = 16, proof_bytes = 32, length_bytes = 4;
constexpr std::size_t longest_message = std::size_t{1} << 28;

std::string as_big_endian(std::uint64_t number, std::size_t count) {
  std::string bytes;
  for (std::size_t b = count; b-- > 0;)
    bytes += static_cast<char>(number >> (8 * b));
  return bytes;
}

std::size_t told_length(const std::string& bytes, std::size_t at) {
  if (at + length_bytes > bytes.size())
    throw std::runtime_error("a message of the job's store ends early");
  std::size_t length = 0;
  for (std::size_t b = 0; b < length_bytes; ++b)
    length = length << 8 | static_cast<unsigned char>(bytes[at + b]);
  return length;
}

std::string words_in_line(const Message& message) {
  std::string body;
  for (const std::string& word : message)
    body += as_big_endian(word.size(), length_bytes) + word;
  return body;
}

Message words_of_body(const std::string& body) {
  Message message;
  for (std::size_t at = 0; at < body.size(); at += length_bytes + message.back().size()) {
    const std::size_t length = told_length(body, at);
    if (length > body.size() - at - length_bytes)
      throw std::runtime_error("a message of the job's store ends early");
    message.push_back(body.substr(at + length_bytes, length));
  }
  return message;
}

}  // namespace

namespace handshake {

std::string challenge() { return first_letters + random_bytes(nonce_bytes); }

bool is_challenge(const std::string& bytes) { return bytes.starts_with(first_letters); }

std::string answer(const std::string& secret, const std::string& challenge) {
  const std::string nonce = random_bytes(nonce_bytes);
  return nonce + hmac_sha256(secret, "rank" + challenge + nonce);
}

bool is_proven(const std::string& secret, const std::string& challenge, const std::string& answer) {
  return equal_proofs(answer.substr(nonce_bytes),
                      hmac_sha256(secret, "rank" + challenge + answer.substr(0, nonce_bytes)));
}

std::string verdict(const std::string& secret, const std::string& challenge,
                    const std::string& answer) {
  return hmac_sha256(secret, "store" + challenge + answer);
}

std::string refusal() { return std::string(verdict_bytes, '\0'); }

}  // namespace handshake

Sealed::Sealed(const std::string& secret, const std::string& challenge, const std::string& answer,
               End own)
    : key_(hmac_sha256(secret, "messages" + challenge + answer)), is_store_(own == End::Store) {}

std::string Sealed::proof(bool by_store, std::uint64_t number, const std::string& body) const {
  return hmac_sha256(key_, (by_store ? "S" : "R") + as_big_endian(number, 8) + body);
}

std::string Sealed::closed(const Message& message) {
  const std::string body = words_in_line(message);
  if (body.size() > longest_message)
    throw std::runtime_error("too much for a message to the job's store");
  return as_big_endian(body.size(), length_bytes) + body + proof(is_store_, sent_++, body);
}

std::optional<Message> Sealed::opened(std::string& received) {
  if (received.size() < length_bytes)
    return std::nullopt;
  const std::size_t length = told_length(received, 0), whole = length_bytes + length + proof_bytes;
  if (length > longest_message)
    throw std::runtime_error("a message of the job's store is too long");
  if (received.size() < whole)
    return std::nullopt;
  const std::string body = received.substr(length_bytes, length);
  if (!equal_proofs(received.substr(length_bytes + length, proof_bytes),
                    proof(!is_store_, taken_, body)))
    throw std::runtime_error("a message of the job's store is not from who shares its secret");
  ++taken_;
  received.erase(0, whole);
  return words_of_body(body);
}

}  // namespace pipewright::exec
