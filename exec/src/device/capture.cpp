#include "device/capture.hpp"

#include <utility>

#include "device/gpu.hpp"
#include "device/stream.hpp"

namespace pipewright::exec {
namespace {

struct DoneAgain final : CapturedWork {
  explicit DoneAgain(std::function<void()> w) : work(std::move(w)) {}
  void replay() override { work(); }
  std::function<void()> work;
};

struct CpuCapturer final : Capturer {
  std::unique_ptr<CapturedWork> capture(std::function<void()> work) override {
    return std::make_unique<DoneAgain>(std::move(work));
  }
};

}  // namespace

std::unique_ptr<Capturer> make_capturer(AccountEntry* account) {
  if (OnStream::current().native())
    return make_graph_capturer(account);
  return std::make_unique<CpuCapturer>();
}

}  // namespace pipewright::exec
