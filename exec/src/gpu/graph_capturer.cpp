#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>

#include <atomic>

#include "device/kept_uses.hpp"
#include "driver.hpp"
#include "memory/set_aside.hpp"
#include "pipewright/exec/device/gpu.hpp"
#include "pipewright/exec/first_line.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

const Driver& driver() {
  static const Driver driver;
  return driver;
}

CUstream current_stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

/// A memory pool in LibTorch's allocator that only graphs allocate from.
class Pool {
 public:
  Pool() : id_{next_id(), 0} {}
  ~Pool() {
    for (int use = 0; use < uses_; ++use)
      allocator::releasePool(device_, id_);
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Directs this stream's allocations to the pool from now on, on any thread.
  void open(CUstream stream) {
    device_ = c10::cuda::getCurrentCUDAStream().device_index();
    allocator::beginAllocateToPool(device_, id_,
                                   [stream](cudaStream_t asking) { return asking == stream; });
    ++uses_;
  }
  void close() const { allocator::endAllocateToPool(device_, id_); }

 private:
  /// Returns a pool id that cannot collide with LibTorch's ids, which count from 1.
  static c10::CaptureId_t next_id() {
    static std::atomic<c10::CaptureId_t> next{c10::CaptureId_t{1} << 48};
    return next++;
  }

  c10::MempoolId_t id_;
  c10::DeviceIndex device_ = 0;
  int uses_ = 0;
};

class Graph final : public CapturedWork {
 public:
  Graph(CUgraph captured, std::shared_ptr<Pool> pool)
      : pool_(std::move(pool)), launch_(driver().find<decltype(&cuGraphLaunch)>("cuGraphLaunch")) {
    PIPEWRIGHT_DRIVER(driver(), cuGraphInstantiateWithFlags, &graph_, captured, 0ULL);
    PIPEWRIGHT_DRIVER(driver(), cuGraphDestroy, captured);
  }
  ~Graph() override {
    // Running work ends first. A failure is ignored, because a destructor cannot report it.
    if (const auto destroy = driver().find<decltype(&cuGraphExecDestroy)>("cuGraphExecDestroy"))
      destroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void replay() override { Driver::require(launch_(graph_, current_stream()), "cuGraphLaunch"); }

 private:
  std::shared_ptr<Pool> pool_;
  decltype(&cuGraphLaunch) launch_;
  CUgraphExec graph_{};
};

class GraphCapturer final : public Capturer {
 public:
  explicit GraphCapturer(AccountEntry* account) : set_aside_(account) {}

  std::unique_ptr<CapturedWork> capture(std::function<void()> work) override {
    const CUstream stream = current_stream();
    const CaptureUnderWay under_way;
    set_aside_.begin();
    pool_->open(stream);
    CUgraph graph{};
    try {
      // Relaxed mode: the threads of other ranks may make any CUDA call during the capture.
      driver().call("cuStreamBeginCapture_v2",  // a macro in the header
                    static_cast<decltype(&cuStreamBeginCapture)>(nullptr), stream,
                    CU_STREAM_CAPTURE_MODE_RELAXED);
      work();
      PIPEWRIGHT_DRIVER(driver(), cuStreamEndCapture, stream, &graph);
      pool_->close();
    } catch (const std::exception& error) {
      give_up(stream);
      throw plan::InputError(fmt::format(
          "training.cuda_graphs: this work cannot be captured: {}. Layers and loss must not wait "
          "for the device, copy from it or draw undeclared random numbers",
          first_line(error.what())));
    }
    set_aside_.end();
    return std::make_unique<Graph>(graph, pool_);
  }

 private:
  /// Ends the capture, because the stream must not stay in capture mode.
  void give_up(CUstream stream) {
    CUgraph broken{};
    const auto end = driver().find<decltype(&cuStreamEndCapture)>("cuStreamEndCapture");
    if (end != nullptr && end(stream, &broken) == CUDA_SUCCESS && broken != nullptr)
      PIPEWRIGHT_DRIVER(driver(), cuGraphDestroy, broken);
    pool_->close();
  }

  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
  SetAside set_aside_;
};

}  // namespace

std::unique_ptr<Capturer> make_graph_capturer(AccountEntry* account) {
  return std::make_unique<GraphCapturer>(account);
}

}  // namespace pipewright::exec
