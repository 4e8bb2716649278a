#pragma once

// Keeps LibTorch from forgetting who uses memory while a graph is captured. Its allocator takes
// each use of a block by another stream (`record_stream`) that it is told of meanwhile for one
// within the graph, whichever stream is captured, and does not wait for it if the block is freed
// during a capture. Other ranks go on meanwhile: it is told of their uses once nothing is captured,
// and the tensors are kept until then.

#include "pipewright/exec/tensors.hpp"

namespace pipewright::exec {

/// Says that the current stream uses a tensor that another one has made.
void record_use(const at::Tensor& tensor);

/// While it lives, something is captured.
class CaptureUnderWay {
 public:
  CaptureUnderWay();
  ~CaptureUnderWay();
  CaptureUnderWay(const CaptureUnderWay&) = delete;
  CaptureUnderWay& operator=(const CaptureUnderWay&) = delete;
};

}  // namespace pipewright::exec
