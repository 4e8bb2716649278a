#pragma once

// SHA-256 and the proofs made with it (HMAC): who knows a secret can show it without telling it.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace pipewright::exec {

/// FIPS 180-4: the digest of these bytes, 32 of them.
std::string sha256(std::string_view bytes);

/// RFC 2104 with SHA-256: 32 bytes that only who knows `key` can make of `bytes`.
std::string hmac_sha256(std::string_view key, std::string_view bytes);

/// In a time that does not tell where they differ.
bool equal_proofs(std::string_view a, std::string_view b);

/// From the system. Throws std::runtime_error where it has none.
std::string random_bytes(std::size_t count);

/// Two letters for a byte: "0a1b".
std::string in_hex(std::string_view bytes);

}  // namespace pipewright::exec
