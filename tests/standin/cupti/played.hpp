#pragma once

// Buffers that were kept on a machine with a GPU, to be played again.

#include <deque>
#include <string>
#include <vector>

#include "buffers.hpp"

namespace pipewright::standin {

struct PlayedBuffer {
  int collection = 0;  // after which stretch of recording it came, from 1
  Bytes bytes;         // whose kernels' names point to `names` of the Played
  std::vector<std::size_t> begins;
};

struct Played {
  std::deque<std::string> names;
  std::vector<PlayedBuffer> buffers;
};

/// What PIPEWRIGHT_KEEP_CUPTI has written into a folder. Ends the process where that is not so.
Played played_from(const std::string& folder);

}  // namespace pipewright::standin
