#pragma once

// The checksum that verifies that a checkpoint's bytes are those that were written.

#include <cstddef>
#include <cstdint>

namespace pipewright::exec {

/// Returns the CRC-32C (Castagnoli; RFC 3720, appendix B.4) of `size` bytes, computed eight at a
/// time (Kounavis and Berry, ISCC 2005). `before`: the checksum of the preceding bytes.
std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t before = 0);

}  // namespace pipewright::exec
