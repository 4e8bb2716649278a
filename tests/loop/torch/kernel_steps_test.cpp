#include "pipewright/loop_torch/kernel_steps.hpp"

#include <set>

#include "exec/support/sample_schedules.hpp"
#include "exec/support/small_gpt.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "support/catch.hpp"

namespace kernel_steps_test {

using namespace pipewright;

TEST_CASE("Every other step is recorded, with the operators of each action on its rank", "[loop]") {
  const auto schedule = test::make("zb-h1", 2, 4);
  const auto program = plan::lower(schedule);
  const auto source = profiler::operator_source();
  loop::KernelSteps kernels(*source, program);
  exec::ExecutorOptions options;
  options.starting = [&](const plan::Instruction& i) { kernels.starting(i); };
  options.observer = [&](const exec::InstructionRecord& record) { kernels.ended(record); };
  exec::Executor executor(program, test::partition_for(schedule), test::small_setup(), options);
  CHECK_FALSE(kernels.take());
  for (int step = 0; step < 4; ++step) {
    kernels.begin_step();
    kernels.end_step(executor.step(step).value().duration);
  }
  const auto found = kernels.take();
  REQUIRE(found);
  CHECK(found->overhead);
  CHECK_FALSE(found->on_device);

  std::multiset<std::string> noted, wanted;
  for (const profiler::WorkRange& range : found->pass.ranges)
    if (plan::is_compute(range.instruction.kind))
      noted.insert(std::to_string(range.rank) + " " + to_string(range.instruction));
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    for (const plan::Instruction& i : program.ranks[rank])
      if (plan::is_compute(i.kind))
        wanted.insert(std::to_string(rank) + " " + to_string(i));
  CHECK(noted == wanted);
  for (const profiler::RankWork& work : profiler::work_by_rank(found->pass))
    if (work.kind == plan::InstructionKind::Forward ||
        work.kind == plan::InstructionKind::WeightGradient) {
      CHECK(work.times == 4);
      CHECK(work.time.count > 0);
      CHECK(work.time.device.value > 0);
    }
}

}  // namespace kernel_steps_test
