// Prints numbers of ranks in other processes exactly, so that tests can compare the bits.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "pipewright/exec/checkpoint/crc32c.hpp"
#include "pipewright/exec/tensors.hpp"

namespace pipewright::test {

inline std::string bits_of(double number) {
  return fmt::format("{:016x}", std::bit_cast<std::uint64_t>(number));
}

inline std::string line_of_weights(const std::vector<at::Tensor>& parameters) {
  std::vector<std::string> sums;
  for (const at::Tensor& parameter : parameters)
    sums.push_back(
        fmt::format("{:08x}", exec::crc32c(parameter.const_data_ptr(), parameter.nbytes())));
  return fmt::format("weights {}", fmt::join(sums, " "));
}

}  // namespace pipewright::test
