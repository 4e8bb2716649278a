#include "pipewright/profiler/activity/joined_passes.hpp"

#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/profiler/activity/kernel_table.hpp"
#include "profiler/support/made_up_activity.hpp"
#include "support/catch.hpp"

namespace joined_passes_test {

using namespace pipewright;
using namespace pipewright::profiler;

/// Makes a forward of a layer with one kernel, from 10 µs to 30 µs after `begin`.
RecordedPass forward_of(int layer, const std::string& kernel, double begin) {
  test::SyntheticData made;
  const auto label = made.range("0F0", begin, begin + 20, 0, layer);
  made.kernel(kernel, label, begin + 5, begin + 10, begin + 30);
  // Makes numbers unique, as those of one source and one log are.
  for (WorkRange& range : made.pass.ranges)
    range.label += static_cast<std::uint64_t>(100 * layer);
  for (GpuRecord& record : made.pass.activity.records) {
    record.correlation += static_cast<std::uint32_t>(100 * layer);
    if (record.kind == RecordKind::Label)
      record.label += static_cast<std::uint64_t>(100 * layer);
  }
  made.pass.activity.dropped = 2;
  return made.pass;
}

TEST_CASE("Passes of sections are joined one after the other, each with its kernels",
          "[activity]") {
  const RecordedPass all =
      joined({forward_of(0, "gemm", 1000), forward_of(1, "relu", 5000), forward_of(2, "nll", 0)});
  CHECK(all.activity.dropped == 6);
  REQUIRE(all.ranges.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(to_string(all.ranges[i].instruction) == std::to_string(i) + "F0");
    CHECK(all.ranges[i].start == test::us(1000 + 30 * static_cast<double>(i)));
  }
  const plan::EventTable table =
      kernel_table(all, [](int layer) { return "layer " + std::to_string(layer); });
  CHECK(table.length == plan::Seconds{90e-6});
  const std::vector<std::string> expected{"0F0",     "1F0",  "2F0",  "layer 0", "layer 1",
                                          "layer 2", "gemm", "relu", "nll"};
  CHECK(table.names == expected);
}

TEST_CASE("Joining no pass gives none, and one pass stays unchanged", "[activity]") {
  CHECK(joined({}).ranges.empty());
  const RecordedPass one = forward_of(0, "gemm", 1000);
  CHECK((joined({one}).ranges == one.ranges));
  CHECK((joined({one}).activity.records == one.activity.records));
}

}  // namespace joined_passes_test
