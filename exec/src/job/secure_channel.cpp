#include "secure_channel.hpp"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "crypto.hpp"

namespace pipewright::exec {
namespace {

constexpr std::string_view identity = "pipewright";
/// A message is a big-endian length followed by an array of strings in CBOR.
constexpr std::size_t length_bytes = 4, longest_message = std::size_t{1} << 28;

unsigned copy_key(SSL* ssl, unsigned char* buffer, unsigned size) {
  const auto& key = *static_cast<const std::string*>(SSL_get_app_data(ssl));
  if (key.size() > size)
    return 0;
  std::ranges::copy(key, buffer);
  return static_cast<unsigned>(key.size());
}

unsigned key_of_client(SSL* ssl, const char* /*hint*/, char* own_identity, unsigned identity_size,
                       unsigned char* key, unsigned key_size) {
  *fmt::format_to_n(own_identity, identity_size - 1, "{}", identity).out = '\0';
  return copy_key(ssl, key, key_size);
}

unsigned key_for_client(SSL* ssl, const char* client, unsigned char* key, unsigned key_size) {
  return client == identity ? copy_key(ssl, key, key_size) : 0;
}

SSL_CTX* make_context() {
  SSL_CTX* const context = SSL_CTX_new(TLS_method());
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") != 1)
    throw std::runtime_error("OpenSSL has no TLS 1.3");
  SSL_CTX_set_psk_client_callback(context, key_of_client);
  SSL_CTX_set_psk_server_callback(context, key_for_client);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  return context;
}

SSL* make_ssl() {
  static SSL_CTX* const context = make_context();  // lives as long as the process
  ERR_clear_error();
  SSL* const ssl = SSL_new(context);
  BIO *const incoming = BIO_new(BIO_s_mem()), *const outgoing = BIO_new(BIO_s_mem());
  if (ssl == nullptr || incoming == nullptr || outgoing == nullptr)
    throw std::bad_alloc();
  SSL_set_bio(ssl, incoming, outgoing);
  return ssl;
}

[[noreturn]] void fail() {
  const unsigned long error = ERR_peek_last_error();
  const char* const reason = ERR_reason_error_string(error);
  const std::string why = reason == nullptr ? "the peer closed the connection" : reason;
  // OpenSSL numbers the alerts of a peer from this offset on.
  if (ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) >= SSL_AD_REASON_OFFSET)
    throw WrongSecret(why);
  throw std::runtime_error(fmt::format("the secure connection is broken: {}", why));
}

}  // namespace

void SecureChannel::Free::operator()(SSL* ssl) const { SSL_free(ssl); }

SecureChannel::SecureChannel(Role role, const std::string& secret)
    : key_(hmac_sha256(secret, "pipewright TLS 1.3 PSK")), ssl_(make_ssl()) {
  SSL_set_app_data(ssl_.get(), const_cast<std::string*>(&key_));
  if (role == Role::Server) {
    SSL_set_accept_state(ssl_.get());
  } else {
    // A server that does not know the key may offer a certificate; none is trusted.
    SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_set_connect_state(ssl_.get());
    receive("");  // begins the handshake
  }
}

bool SecureChannel::is_authenticated() const {
  return SSL_is_init_finished(ssl_.get()) == 1 && SSL_session_reused(ssl_.get()) == 1;
}

void SecureChannel::receive(std::string_view bytes) {
  BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
  ERR_clear_error();
  int result = SSL_do_handshake(ssl_.get());
  if (result == 1 && !is_authenticated())
    throw std::runtime_error("the peer did not use the secret");
  std::array<char, 4096> plain{};
  while (result > 0) {
    result = SSL_read(ssl_.get(), plain.data(), static_cast<int>(plain.size()));
    if (result > 0)
      received_.append(plain.data(), static_cast<std::size_t>(result));
  }
  if (SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ)
    fail();
}

std::optional<Message> SecureChannel::next_message() {
  if (received_.size() < length_bytes)
    return std::nullopt;
  std::size_t length = 0;
  for (std::size_t byte = 0; byte < length_bytes; ++byte)
    length = length << 8 | static_cast<unsigned char>(received_[byte]);
  if (length > longest_message)
    throw std::runtime_error("a message to the job's store is too long");
  if (received_.size() < length_bytes + length)
    return std::nullopt;
  const auto body = std::string_view(received_).substr(length_bytes, length);
  auto message = nlohmann::json::from_cbor(body).get<Message>();
  received_.erase(0, length_bytes + length);
  return message;
}

void SecureChannel::send(const Message& message) {
  std::string line(length_bytes, '\0');
  nlohmann::json::to_cbor(message, line);
  const std::size_t length = line.size() - length_bytes;
  if (length > longest_message)
    throw std::runtime_error("a message to the job's store is too long");
  for (std::size_t byte = 0; byte < length_bytes; ++byte)
    line[byte] = static_cast<char>(length >> (8 * (length_bytes - 1 - byte)));
  ERR_clear_error();
  if (SSL_write(ssl_.get(), line.data(), static_cast<int>(line.size())) <= 0)
    fail();
}

std::string SecureChannel::take_outgoing() {
  BIO* const outgoing = SSL_get_wbio(ssl_.get());
  std::string bytes(BIO_ctrl_pending(outgoing), '\0');
  BIO_read(outgoing, bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

}  // namespace pipewright::exec
