#pragma once

// Works around the caching allocator's treatment of `record_stream` during a graph capture. While
// any stream is captured, LibTorch's allocator treats each recorded use of a block by another
// stream as a part of the graph. It does not wait for that use if the block is freed during a
// capture. Other ranks keep working during a capture, so their uses are recorded when no capture is
// under way, and the tensors are kept until then.

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// Records that the current stream uses a tensor that another stream has made.
void record_use(const at::Tensor& tensor);

/// Marks a capture as under way while it lives.
class CaptureUnderWay {
 public:
  CaptureUnderWay();
  ~CaptureUnderWay();
  CaptureUnderWay(const CaptureUnderWay&) = delete;
  CaptureUnderWay& operator=(const CaptureUnderWay&) = delete;
};

}  // namespace pipewright::exec
