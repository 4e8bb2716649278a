#include "print/reserved_memory.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace pipewright::cli {

std::string verdict_words(const plan::MemoryVerdict& verdict) {
  return fmt::format("{}{}{}", to_string(verdict.fits), verdict.reason.empty() ? "" : ": ",
                     verdict.reason);
}

plan::Json to_json(const plan::ReservedMemory& reserved) {
  if (!reserved.verdict)
    return {{"refused", reserved.refused}};
  const plan::MemoryVerdict& own = *reserved.verdict;
  plan::Json json{{"allocated_bytes", own.allocated.value},
                  {"reserved_bytes", own.reserved.value},
                  {"fragmentation_bytes", own.fragmentation().value},
                  {"left_bytes", own.left.value},
                  {"verdict", to_string(own.fits)}};
  if (!own.reason.empty())
    json["reason"] = own.reason;
  return json;
}

std::string reserved_table(const std::vector<plan::ReservedMemory>& ranks) {
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
