#pragma once

// Describes the memory of a device and its parts. All commands use the same words.

#include <string>
#include <vector>

#include "pipewright/models/allocator/device_memory.hpp"

namespace pipewright::cli {

/// Returns "61.90 GB: tensors 58.11, fragmentation 2.29, CUDA context 0.50 and communicators 1.00
/// (guesses)", without parts that are 0.
std::string memory_words(const models::DeviceMemory& memory);
/// Returns a line about the fullest rank; empty if there are only tensors.
std::string fullest_line(const std::vector<models::DeviceMemory>& ranks);

}  // namespace pipewright::cli
