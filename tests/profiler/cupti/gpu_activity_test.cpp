// Records of a real GPU. Tests skip without a GPU, or if recording is not permitted.

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <nlohmann/json.hpp>

#include "exec/support/sample_schedules.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/profiler/activity/kernel_table.hpp"
#include "pipewright/profiler/activity/work_log.hpp"
#include "pipewright/profiler/profile/inspection.hpp"
#include "profiler/support/on_standin.hpp"
#include "profiler/support/small_model.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"

namespace gpu_activity_test {

using namespace pipewright;
using namespace pipewright::profiler;

std::unique_ptr<ActivitySource> source_or_skip() {
  std::string missing;
  try {
    return cupti_source();
  } catch (const plan::InputError& error) {
    missing = error.what();
  }
  test::skip(missing);
}

/// Returns a source for tests that check times.
std::unique_ptr<ActivitySource> real_source_or_skip() {
  if (test::on_standin())
    test::skip("the stand-in for a GPU takes as long as the CPU");
  return source_or_skip();
}

void finish() { c10::impl::VirtualGuardImpl(at::kCUDA).synchronizeDevice(0); }

plan::Instruction action(const char* text) { return plan::parse_instruction(text).value(); }

std::string kernels_of(const WorkReport& report) {
  std::string names;
  for (const KernelSum& kernel : report.kernels)
    names += kernel.name + "\n";
  return names;
}

TEST_CASE("On a GPU a matrix product takes as long as the events around it report", "[cuda]") {
  const auto source = real_source_or_skip();
  const at::Tensor a = at::ones({4096, 4096}, at::TensorOptions(at::kCUDA));
  at::mm(a, a);
  finish();
  const c10::impl::VirtualGuardImpl guard(at::kCUDA);
  const c10::Stream stream = guard.getStream({at::kCUDA, 0});
  c10::Event begin(at::kCUDA, c10::EventFlag::BACKEND_DEFAULT);
  c10::Event end(at::kCUDA, c10::EventFlag::BACKEND_DEFAULT);
  WorkLog log(*source);
  log.start();
  log.begin(0, action("0F0"));
  begin.record(stream);
  for (int i = 0; i < 10; ++i)
    at::mm(a, a);
  end.record(stream);
  log.end();
  finish();
  log.stop();
  auto ranges = log.take();
  const WorkReport report = work_report({{source->collect(), std::move(ranges)}});
  INFO(kernels_of(report));
  REQUIRE(report.parts.size() == 1);
  CHECK_FALSE(report.lost.any());
  CHECK(report.parts[0].time.count >= 10);
  const double by_events = begin.elapsedTime(end) / 1000;
  CHECK(report.parts[0].time.device.value <= by_events * 1.001);
  CHECK(report.parts[0].time.device.value >= by_events * 0.9);
}

TEST_CASE(
    "On a GPU kernels are attributed to their layers, including backward, and none is dropped",
    "[cuda]") {
  const auto source = source_or_skip();
  const test::Fixed data{at::ones({64, 256})};
  const exec::TrainingSetup setup =
      test::setup_of({test::linear("first", 256, 256), test::linear("second", 256, 256)}, data);
  const LayerBench bench(setup, exec::on_gpus(1).front());
  const Inspection found = inspect(bench, *source, 5);
  INFO(to_json(found.report, [](int layer) { return std::to_string(layer); }).dump(1));
  CHECK(found.report.source == "CUPTI");
  CHECK_FALSE(found.report.lost.any());
  for (const WorkPart& part : found.report.parts)
    if (part.layer >= 0 && part.layer < 2) {
      CHECK(part.time.count > 0);
      CHECK(part.time.device.value > 0);
    }
  // The loss has work in its backward, which LibTorch submits on a separate thread.
  CHECK(found.samples.at(1).backward.size() == 5);
  const plan::EventTable table =
      kernel_table(found.last, [](int layer) { return std::to_string(layer); });
  CHECK(table.tracks.front().name == "pipeline");
}

TEST_CASE("On a GPU a second CUPTI source is rejected", "[cuda]") {
  const auto source = source_or_skip();
  CHECK_THROWS_AS(cupti_source(), plan::InputError);
}

TEST_CASE("On a GPU each action of a pipeline has its own kernels, launched by any thread",
          "[cuda]") {
  const auto source = source_or_skip();
  const auto schedule = test::make("zb-h1", 2, 4);
  const plan::Program program = plan::lower(schedule);
  WorkLog log(*source);
  exec::Executor executor(program, test::partition_for(schedule), test::small_setup(),
                          {.starting =
                               [&](const plan::Instruction& i) {
                                 if (plan::has_microbatch(i.kind))
                                   log.begin(program.placement.rank_of(i.stage, i.microbatch), i);
                                 else
                                   log.end();
                               },
                           .devices = exec::on_gpus(2)});
  executor.step(0);
  executor.step(1);
  log.start();
  executor.step(2);
  log.stop();
  auto ranges = log.take();
  const RecordedPass pass{source->collect(), std::move(ranges)};
  const WorkReport report = work_report({pass});
  INFO(to_json(report, [](int) { return std::string(); }).dump(1));
  CHECK_FALSE(report.lost.any());
  int actions = 0;
  for (const RankWork& work : work_by_rank(pass))
    if (work.kind == plan::InstructionKind::Forward ||
        work.kind == plan::InstructionKind::InputGradient ||
        work.kind == plan::InstructionKind::WeightGradient) {
      ++actions;
      CHECK(work.times == 4);
      CHECK(work.time.count >= 4);
      CHECK(work.time.device.value > 0);
    }
  CHECK(actions == 6);
}

TEST_CASE("On a GPU recording adds little to a pass of a large layer", "[cuda]") {
  const auto source = real_source_or_skip();
  const test::Fixed data{at::ones({4096, 4096})};
  const exec::TrainingSetup setup =
      test::setup_of({test::linear("first", 4096, 4096), test::linear("second", 4096, 4096)}, data);
  const LayerBench bench(setup, exec::on_gpus(1).front());
  const Inspection found = inspect(bench, *source, 20);
  REQUIRE(found.report.overhead);
  // Printed but not checked, because other load on the machine affects it.
  WARN("recording changed a pass by " << 100 * *found.report.overhead << " % (wanted: under 2 %)");
  CHECK(found.report.lost.late_buffers == 0);
}

}  // namespace gpu_activity_test
