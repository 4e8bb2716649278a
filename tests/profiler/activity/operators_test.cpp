// The CPU's operators from recording to the report.

#include <ATen/ATen.h>

#include "pipewright/plan/error.hpp"
#include "pipewright/profiler/activity/work_log.hpp"
#include "pipewright/profiler/activity/work_report.hpp"
#include "support/catch.hpp"

namespace operators_test {

using namespace pipewright;
using namespace pipewright::profiler;

plan::Instruction action(const char* text) { return plan::parse_instruction(text).value(); }

TEST_CASE("Operators are attributed to their ranges, and recorded only between start and stop",
          "[activity]") {
  const auto source = operator_source();
  CHECK_FALSE(source->on_device());
  WorkLog log(*source);
  const at::Tensor a = at::ones({64, 64});
  at::mm(a, a);  // not recorded
  log.start();
  log.begin(0, action("0F0"), 3);
  at::mm(a, a);
  log.begin(0, action("0F0"), 4);
  at::relu(a);
  at::relu(a);
  log.end();
  log.stop();
  log.begin(0, action("0F1"), 3);
  at::mm(a, a);
  log.end();

  const std::vector<WorkRange> ranges = log.take();
  REQUIRE(ranges.size() == 2);
  CHECK(ranges[0].end <= ranges[1].start);
  const WorkReport report = work_report({{source->collect(), ranges}});
  REQUIRE(report.parts.size() == 2);
  const auto kernel = [](const WorkPart& part, const std::string& name) {
    for (const KernelSum& sum : part.kernels)
      if (sum.name == name)
        return sum.count;
    return 0.0;
  };
  CHECK(report.parts[0].layer == 3);
  CHECK(kernel(report.parts[0], "aten::mm") == 1);
  CHECK(kernel(report.parts[0], "aten::relu") == 0);
  CHECK(kernel(report.parts[1], "aten::relu") == 2);
  for (const WorkPart& part : report.parts) {
    CHECK(part.time.device.value > 0);
    // The host did nothing but operators and the time between them.
    CHECK(part.time.elapsed().value == Approx(part.time.host.value).epsilon(1e-3));
    CHECK(part.time.waiting.value == 0);
  }
  CHECK_FALSE(report.lost.any());
  CHECK(source->collect().records.empty());
}

TEST_CASE("A second recorder in one process is rejected", "[activity]") {
  const auto source = operator_source();
  CHECK_THROWS_AS(operator_source(), plan::InputError);
}

}  // namespace operators_test
