#include "crypto.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <stdexcept>

namespace pipewright::exec {
namespace {

/// Keeps OpenSSL's tables until the process ends. OpenSSL would free them at exit, but a thread
/// that waits for a dead host may still use a connection then.
void keep_openssl_until_the_end() {
  static const int done = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  if (done != 1)
    throw std::runtime_error("OpenSSL cannot start");
}

unsigned char* as_unsigned(std::string& bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

}  // namespace

std::string hmac_sha256(const std::string& key, const std::string& message) {
  keep_openssl_until_the_end();
  std::string mac(32, '\0');
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(), as_unsigned(mac),
           nullptr) == nullptr)
    throw std::runtime_error("OpenSSL has no HMAC-SHA-256");
  return mac;
}

bool equal_in_constant_time(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_bytes(std::size_t count) {
  keep_openssl_until_the_end();
  std::string bytes(count, '\0');
  if (RAND_bytes(as_unsigned(bytes), static_cast<int>(count)) != 1)
    throw std::runtime_error("OpenSSL has no random numbers");
  return bytes;
}

std::string to_hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

}  // namespace pipewright::exec
