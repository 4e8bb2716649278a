// Graphs of CUDA's runtime and of the driver.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "result.hpp"
#include "streams.hpp"

#undef cuStreamBeginCapture  // the header defines it as _v2

using namespace standin;

namespace {

using Handle = std::shared_ptr<Graph>;

thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;

cudaError_t begin(cudaStream_t stream) {
  if (stream_of(stream).is_captured())
    return cudaErrorIllegalState;
  stream_of(stream).begin_capture();
  return cudaSuccess;
}

cudaError_t end(cudaStream_t stream, void** graph) {
  if (!stream_of(stream).is_captured())
    return cudaErrorIllegalState;
  Handle captured = stream_of(stream).end_capture();
  *graph = captured ? new Handle(std::move(captured)) : nullptr;
  return *graph == nullptr ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

Handle& graph_of(void* graph) { return *static_cast<Handle*>(graph); }

/// Converts a result. The driver's calls do not change the runtime's last error.
CUresult driver(cudaError_t result) { return static_cast<CUresult>(result); }

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return done(begin(stream));
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return done(end(stream, reinterpret_cast<void**>(graph)));
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  Stream& own = stream_of(stream);
  *status = !own.is_captured()        ? cudaStreamCaptureStatusNone
            : own.is_capture_broken() ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
  return done();
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  if (id != nullptr)
    *id = stream_of(stream).number();
  if (graph != nullptr)
    *graph = nullptr;
  if (dependencies != nullptr)
    *dependencies = nullptr;
  if (edges != nullptr)
    *edges = nullptr;
  if (count != nullptr)
    *count = 0;
  return cudaStreamIsCapturing(stream, status);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, mode_of_thread);
  return done();
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph,
                                          unsigned long long) {
  *made = reinterpret_cast<cudaGraphExec_t>(new Handle(graph_of(graph)));
  return done();
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  stream_of(stream).launch(graph_of(graph));
  return done();
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete &graph_of(graph);
  return done();
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete &graph_of(graph);
  return done();
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  return driver(begin(stream));
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return driver(end(stream, reinterpret_cast<void**>(graph)));
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* made, CUgraph graph, unsigned long long flags) {
  return driver(cudaGraphInstantiateWithFlags(made, graph, flags));
}
CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  return driver(cudaGraphLaunch(graph, stream));
}
CUresult cuGraphDestroy(CUgraph graph) { return driver(cudaGraphDestroy(graph)); }
CUresult cuGraphExecDestroy(CUgraphExec graph) { return driver(cudaGraphExecDestroy(graph)); }

}  // extern "C"
