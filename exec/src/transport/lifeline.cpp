#include "lifeline.hpp"

#include <ATen/ATen.h>

#include "cpu/unpinned_thread.hpp"
#include "job/watch.hpp"
#include "pipewright/exec/aborted.hpp"

namespace pipewright::exec {

Lifeline::Lifeline(Job& job) : mesh_(job, "lifeline") {
  if (job.size() == 1)
    return;
  thread_ = unpinned_thread([this, &job] {
    const int next = (job.rank() + 1) % job.size();
    try {
      const auto nothing = mesh_.receive(at::empty({1}, at::kByte), next, /*tag=*/0);
      if (const std::string end = mesh_.wait_or_end(nothing); !end.empty())
        job.watch().suspect(next, end);
    } catch (const Aborted&) {
      // The job or this lifeline has ended.
    }
  });
}

Lifeline::~Lifeline() {
  mesh_.end("the transport has been closed");
  if (thread_.joinable())
    thread_.join();
}

}  // namespace pipewright::exec
