#pragma once

// The checksum of native timeline files: XXH64 with seed 0, as `xxhsum -H64` prints it.

#include <cstddef>
#include <cstdint>
#include <span>

namespace pipewright::plan {

std::uint64_t xxh64(std::span<const std::byte> bytes);

}  // namespace pipewright::plan
