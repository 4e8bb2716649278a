#include "pipewright/profiler/activity/work_time.hpp"

#include <cmath>

#include "profiler/support/made_up_activity.hpp"
#include "support/catch.hpp"

namespace work_time_test {

using namespace pipewright;
using namespace pipewright::profiler;
using test::SyntheticData;

std::vector<WorkTime> times_of(const SyntheticData& made) {
  const auto& [activity, ranges] = made.pass;
  return work_times(activity, attribute(activity, ranges), ranges);
}

/// Returns device, launch, waiting and host in whole microseconds.
std::string text(const WorkTime& time) {
  const auto us = [](plan::Seconds s) { return std::to_string(std::lround(s.value * 1e6)); };
  return us(time.device) + " " + us(time.launch) + " " + us(time.waiting) + " " + us(time.host);
}

TEST_CASE("A host that runs ahead leaves no launch gaps", "[activity]") {
  SyntheticData made;
  const auto f = made.range("0F0", 0, 10), b = made.range("0B0", 10, 20);
  made.kernel("a", f, 3, 4, 50);
  made.kernel("b", f, 6, 51, 90);
  made.kernel("c", b, 15, 90, 200);
  const auto times = times_of(made);
  // The launch ends when the first kernel was submitted; the device then waits until it starts.
  CHECK(text(times[0]) == "85 3 2 10");
  CHECK(text(times[1]) == "110 0 0 10");
  CHECK(times[0].count == 2);
  CHECK_FALSE(times[1].is_launch_bound());
}

TEST_CASE("If kernels are shorter than their launches, a layer takes the host's time",
          "[activity]") {
  SyntheticData made;
  const auto f = made.range("0F0", 0, 30), b = made.range("0B0", 30, 60);
  made.kernel("a", f, 9, 10, 12);
  made.kernel("b", f, 19, 20, 22);
  made.kernel("c", b, 39, 40, 42);
  const auto times = times_of(made);
  // Launch gaps are 0 to 9, 12 to 19 and 22 to 30; the rest of the last gap belongs to the
  // backward.
  CHECK(text(times[0]) == "4 24 2 30");
  CHECK(text(times[1]) == "2 9 1 30");
  CHECK(times[0].is_launch_bound());
}

TEST_CASE("Work that was submitted in time and starts late counts as waiting", "[activity]") {
  SyntheticData made;
  const auto f = made.range("0F0", 0, 10);
  made.kernel("receive", f, 1, 2, 30, 9);
  made.kernel("after it", f, 5, 40, 90, 7);
  CHECK(text(times_of(made)[0]) == "78 5 35 10");
}

TEST_CASE("Time in which the host waits for another rank's data is not launch time", "[activity]") {
  SyntheticData made;
  const auto f = made.range("1F0", 0, 10, 0);
  made.range("1RECV_F1", 10, 60, 0);
  const auto g = made.range("1F1", 60, 70, 0);
  made.kernel("a", f, 1, 1, 20);
  made.kernel("b", g, 64, 65, 90);
  const auto times = times_of(made);
  CHECK(text(times[1]) == "0 0 40 50");
  CHECK(text(times[2]) == "25 4 1 10");
}

TEST_CASE("Concurrent kernels of one range count once", "[activity]") {
  SyntheticData made;
  const auto f = made.range("0F0", 0, 2);
  made.kernel("a", f, 1, 1, 11, 7);
  made.kernel("b", f, 1, 3, 8, 8);
  CHECK(times_of(made)[0].device.value == Approx(10e-6));
}

TEST_CASE("Two ranks on one GPU have separate gaps", "[activity]") {
  SyntheticData made;
  const auto a = made.range("0F0", 0, 10, 0), b = made.range("1F0", 0, 10, 1);
  made.kernel("a", a, 1, 1, 5, 7);
  made.kernel("b", b, 6, 6, 9, 8);
  const auto times = times_of(made);
  CHECK(text(times[0]) == "4 1 0 10");
  CHECK(text(times[1]) == "3 6 0 10");
}

TEST_CASE("An operator's self time excludes the operators that it calls", "[activity]") {
  Activity cpu{.names = {"linear", "addmm", "relu"}, .records = {}};
  const auto add = [&](std::uint32_t name, double start, double end) {
    GpuRecord record;
    record.name = name;
    record.label = 1;
    record.start = test::us(start);
    record.end = test::us(end);
    cpu.records.push_back(record);
  };
  add(1, 2, 9);  // recorded at its end, so before the operator that calls it
  add(0, 1, 10);
  add(2, 12, 15);
  const auto own = own_times(cpu);
  CHECK(own[0].value == Approx(7e-6));
  CHECK(own[1].value == Approx(2e-6));
  CHECK(own[2].value == Approx(3e-6));
  // On the CPU, time between operators is the framework's and belongs to the range.
  const std::vector<WorkRange> ranges{
      {1, 0, plan::parse_instruction("0F0").value(), 0, test::us(0), test::us(20)}};
  const auto times = work_times(cpu, attribute(cpu, ranges), ranges);
  CHECK(text(times[0]) == "12 8 0 20");
}

}  // namespace work_time_test
