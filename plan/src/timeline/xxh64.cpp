#include "timeline/xxh64.hpp"

// xxHash is included as source, so that an installed static library needs no other library.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace pipewright::plan {

std::uint64_t xxh64(std::span<const std::byte> bytes) {
  return XXH64(bytes.data(), bytes.size(), 0);
}

}  // namespace pipewright::plan
