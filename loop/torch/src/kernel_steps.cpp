#include "pipewright/loop_torch/kernel_steps.hpp"

#include <utility>

#include "pipewright/plan/statistics.hpp"

namespace pipewright::loop {
namespace {

constexpr int steps_to_warm_up = 2;

}  // namespace

KernelSteps::KernelSteps(profiler::ActivitySource& source, const plan::Program& program)
    : source_(source), program_(program), log_(source) {}

/// An instruction without a microbatch concerns a whole stage, which may lie on several ranks. The
/// rank of the calling thread is known by then from earlier instructions.
int KernelSteps::rank_of(const plan::Instruction& i) {
  const std::lock_guard lock(mutex_);
  const auto thread = std::this_thread::get_id();
  if (plan::has_microbatch(i.kind))
    ranks_[thread] = program_.placement.rank_of(i.stage, i.microbatch);
  const auto known = ranks_.find(thread);
  return known == ranks_.end() ? program_.placement.rank_of(i.stage, 0) : known->second;
}

void KernelSteps::starting(const plan::Instruction& i) { log_.begin(rank_of(i), i); }

void KernelSteps::ended(const exec::InstructionRecord& record) { log_.end_of(record.instruction); }

void KernelSteps::begin_step() {
  if (step_ % 2 == 1)
    log_.start();
}

void KernelSteps::end_step(plan::Seconds duration) {
  const bool recorded = step_ % 2 == 1;
  if (recorded) {
    log_.stop();
    auto ranges = log_.take();
    last_ = profiler::RecordedPass{source_.collect(), std::move(ranges)};
  }
  if (step_ >= steps_to_warm_up)
    (recorded ? with_records_ : without_).push_back(duration.value);
  ++step_;
}

std::optional<StepKernels> KernelSteps::take() {
  if (!last_)
    return {};
  StepKernels kernels{*std::exchange(last_, std::nullopt), source_.on_device(), source_.name()};
  if (!with_records_.empty() && !without_.empty())
    kernels.overhead = plan::median(with_records_) / plan::median(without_) - 1;
  return kernels;
}

}  // namespace pipewright::loop
