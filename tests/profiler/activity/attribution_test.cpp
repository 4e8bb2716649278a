#include "pipewright/profiler/activity/attribution.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "profiler/support/made_up_activity.hpp"
#include "support/catch.hpp"

namespace attribution_test {

using namespace pipewright;
using namespace pipewright::profiler;
using test::SyntheticData;

/// Returns "gemm 0F0, copy -": each work's name and the action to which it is attributed.
std::string owners(const RecordedPass& pass) {
  const Attribution found = attribute(pass.activity, pass.ranges);
  std::map<Nanoseconds, std::string> by_time;
  for (std::size_t r = 0; r < pass.activity.records.size(); ++r) {
    const GpuRecord& record = pass.activity.records[r];
    if (!is_work(record.kind))
      continue;
    const int range = found.range_of[r];
    by_time[record.start] =
        pass.activity.names[record.name] + " " +
        (range < 0 ? "-" : to_string(pass.ranges[static_cast<std::size_t>(range)].instruction));
  }
  std::string text;
  for (const auto& [start, words] : by_time)
    text += (text.empty() ? "" : ", ") + words;
  return text;
}

/// Makes two ranks on one GPU, whose backwards are submitted at the same time by LibTorch's own
/// thread.
SyntheticData two_ranks() {
  SyntheticData made;
  const auto first = made.range("0F0", 0, 20, 0), second = made.range("1F0", 0, 20, 1);
  made.range("0B0", 20, 60, 0);
  made.range("1B0", 20, 60, 1);
  made.kernel("gemm", first, 5, 6, 30, 7);
  made.kernel("softmax", second, 6, 8, 40, 8);
  made.kernel("gemm_b", 0, 25, 31, 50, 7);
  made.kernel("softmax_b", 0, 26, 41, 55, 8);
  return made;
}

TEST_CASE("Work is attributed by its call's label, or else by its stream's rank", "[activity]") {
  CHECK(owners(two_ranks().pass) == "gemm 0F0, softmax 1F0, gemm_b 0B0, softmax_b 1B0");
}

/// Makes the same two ranks on two parts of the GPU. Each part has its own context, in which
/// streams count from 7.
SyntheticData two_parts() {
  SyntheticData made;
  const auto first = made.range("0F0", 0, 20, 0), second = made.range("1F0", 0, 20, 1);
  made.range("0B0", 20, 60, 0);
  made.range("1B0", 20, 60, 1);
  for (const std::uint32_t context : {2U, 3U}) {
    made.in_context(context);
    made.kernel(context == 2 ? "gemm" : "softmax", context == 2 ? first : second, 5, 6 + context,
                30, 7);
    made.kernel(context == 2 ? "gemm_b" : "softmax_b", 0, 25, 31 + context, 50, 7);
  }
  return made;
}

TEST_CASE("Streams with one number in two contexts belong to two ranks", "[activity]") {
  const SyntheticData made = two_parts();
  CHECK(owners(made.pass) == "gemm 0F0, softmax 1F0, gemm_b 0B0, softmax_b 1B0");
  const Attribution found = attribute(made.pass.activity, made.pass.ranges);
  const auto streams = compute_streams(made.pass.activity, found, made.pass.ranges);
  REQUIRE(streams.size() == 2);
  CHECK(streams[0].context == 2);
  CHECK(streams[1].context == 3);
}

TEST_CASE("The order of records does not matter", "[activity]") {
  SyntheticData made = two_ranks();
  const std::string expected = owners(made.pass);
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(made.pass.activity.records.begin(), made.pass.activity.records.end(), random);
    CHECK(owners(made.pass) == expected);
  }
}

TEST_CASE("Unlabeled work on a stream without an owner belongs to the only active rank, or to none",
          "[activity]") {
  SyntheticData made;
  made.range("0F0", 0, 20, 0);
  made.range("1F0", 10, 30, 1);
  made.kernel("alone", 0, 5, 6, 7, 99);
  made.kernel("either", 0, 15, 16, 17, 99);
  made.kernel("late", 0, 80, 81, 82, 99);
  CHECK(owners(made.pass) == "alone 0F0, either -, late -");
  CHECK(attribute(made.pass.activity, made.pass.ranges).unclaimed == 2);
}

TEST_CASE("Lost calls, lost labels, unknown labels and work without times are counted",
          "[activity]") {
  SyntheticData made = two_ranks();
  auto& records = made.pass.activity.records;
  // The first kernel loses its call, the second one its label.
  records.erase(records.begin());
  records.erase(records.begin() + 3);
  made.kernel("of another step", 77, 90, 91, 92, 7);
  made.kernel("untimed", 1, 10, 0, 0, 7);
  const Attribution found = attribute(made.pass.activity, made.pass.ranges);
  CHECK(found.without_call == 1);
  CHECK(found.without_times == 1);
  CHECK(owners(made.pass) ==
        "untimed -, gemm 0F0, softmax -, gemm_b 0B0, softmax_b -, of another step -");
  CHECK(found.unclaimed == 3);
}

TEST_CASE("Without records there is nothing to attribute", "[activity]") {
  const Attribution found = attribute({}, {});
  CHECK(found.range_of.empty());
  CHECK(found.unclaimed == 0);
  SyntheticData made;
  made.kernel("stray", 5, 1, 2, 3);
  CHECK(attribute(made.pass.activity, {}).unclaimed == 1);
}

}  // namespace attribution_test
