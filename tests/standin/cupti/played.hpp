#pragma once

// Buffers that were recorded on a machine with a GPU, to be replayed.

#include <deque>
#include <string>
#include <vector>

#include "buffers.hpp"

namespace pipewright::standin {

struct PlayedBuffer {
  int collection = 0;  // number of the recording's collection, from 1
  Bytes bytes;         // kernels' names point to `names` of Played
  std::vector<std::size_t> begins;
};

struct Played {
  std::deque<std::string> names;
  std::vector<PlayedBuffer> buffers;
};

/// Reads a folder that PIPEWRIGHT_KEEP_CUPTI has written. Ends the process if it is not such a
/// folder.
Played played_from(const std::string& folder);

}  // namespace pipewright::standin
