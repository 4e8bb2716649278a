#include "pipewright/exec/device/capture.hpp"

#include <utility>

#include "memory/set_aside.hpp"
#include "pipewright/exec/device/gpu.hpp"
#include "pipewright/exec/device/stream.hpp"
#include "pipewright/exec/memory/memory_meter.hpp"

namespace pipewright::exec {
namespace {

/// The CPU's stand-in for a captured graph: replay runs the work again. The first run counts its
/// memory as a graph's memory; later runs count none, because a graph would reuse that memory.
struct DoneAgain final : CapturedWork {
  DoneAgain(std::function<void()> w, std::shared_ptr<SetAside> m)
      : work(std::move(w)), memory(std::move(m)) {}

  void replay() override {
    if (std::exchange(was_done, true)) {
      const ChargeTo nobody(static_cast<AccountEntry*>(nullptr));
      return work();
    }
    memory->begin();
    work();
    memory->end();
  }

  std::function<void()> work;
  std::shared_ptr<SetAside> memory;
  bool was_done = false;
};

struct CpuCapturer final : Capturer {
  explicit CpuCapturer(AccountEntry* account) : memory(std::make_shared<SetAside>(account)) {}

  std::unique_ptr<CapturedWork> capture(std::function<void()> work) override {
    return std::make_unique<DoneAgain>(std::move(work), memory);
  }

  std::shared_ptr<SetAside> memory;
};

}  // namespace

std::unique_ptr<Capturer> make_capturer(AccountEntry* account) {
  if (OnStream::current().native())
    return make_graph_capturer(account);
  return std::make_unique<CpuCapturer>(account);
}

}  // namespace pipewright::exec
