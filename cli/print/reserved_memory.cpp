#include "print/reserved_memory.hpp"

#include <fmt/format.h>

namespace pipewright::cli {

std::string verdict_words(const models::MemoryVerdict& verdict) {
  return fmt::format("{}{}{}", to_string(verdict.fits), verdict.reason.empty() ? "" : ": ",
                     verdict.reason);
}

std::string reserved_table(const std::vector<models::ReservedMemory>& ranks) {
  const auto in_mb = [](plan::Bytes bytes) { return static_cast<double>(bytes.value) / 1e6; };
  std::string text;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (const auto& own = ranks[rank].verdict)
      text += fmt::format("{:<4} {:>12.1f}  {:>11.1f}  {:>13.1f}  {:>9.1f}  {}\n", rank,
                          in_mb(own->allocated), in_mb(own->reserved), in_mb(own->fragmentation()),
                          in_mb(own->left), verdict_words(*own));
  return text.empty() ? text
                      : "with Megatron-LM's layers, LibTorch's allocator\n"
                        "rank allocated MB  reserved MB  fragmented MB    left MB\n" +
                            text;
}

}  // namespace pipewright::cli
