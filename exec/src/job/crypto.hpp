#pragma once

// The cryptography of a job, by OpenSSL's libcrypto.

#include <cstddef>
#include <string>

namespace pipewright::exec {

/// Returns the 32 bytes of HMAC-SHA-256 (RFC 2104), which only a holder of `key` can compute.
std::string hmac_sha256(const std::string& key, const std::string& message);

/// Compares in a time that does not depend on where the two differ.
bool equal_in_constant_time(const std::string& a, const std::string& b);

/// Throws std::runtime_error where the system has no source of random numbers.
std::string random_bytes(std::size_t count);

/// Returns two lower-case digits for a byte: "0a1b".
std::string to_hex(const std::string& bytes);

}  // namespace pipewright::exec
