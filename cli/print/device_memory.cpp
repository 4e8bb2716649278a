#include "print/device_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright::cli {

std::string memory_words(const models::DeviceMemory& memory) {
  const auto gb = [](plan::Bytes bytes) { return static_cast<double>(bytes.value) / 1e9; };
  std::string words =
      fmt::format("{:.2f} GB: tensors {:.2f}", gb(memory.total()), gb(memory.allocated));
  if (memory.fragmentation() > plan::Bytes{})
    words += fmt::format(", fragmentation {:.2f}", gb(memory.fragmentation()));
  if (memory.context > plan::Bytes{})
    words += fmt::format(", CUDA context {:.2f} and communicators {:.2f} (guesses)",
                         gb(memory.context), gb(memory.communicators));
  if (!memory.left_out.empty())
    words += fmt::format("; fragmentation is not counted ({})", memory.left_out);
  return words;
}

std::string fullest_line(const std::vector<models::DeviceMemory>& ranks) {
  const auto fullest = std::ranges::max_element(ranks, {}, &models::DeviceMemory::total);
  if (fullest == ranks.end() || fullest->total() == fullest->allocated)
    return {};
  return fmt::format("memory of rank {}, the fullest: {}\n", fullest - ranks.begin(),
                     memory_words(*fullest));
}

}  // namespace pipewright::cli
