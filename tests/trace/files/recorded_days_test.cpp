#include "pipewright/trace/files/recorded_days.hpp"

#include <algorithm>

#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace recorded_days_test {

using namespace pipewright;

plan::Timeline step_of(double forward, double late) {
  return {.name = "measured",
          .ranks = 2,
          .length = {9},
          .spans = {{0, plan::Row::Compute, "0F0", {1}, {1 + forward}},
                    {0, plan::Row::Send, "0SEND_F0", {2}, {9}},
                    {1, plan::Row::Compute, "1B0", {4}, {8}, {2}, {late}},
                    {1, plan::Row::Compute, "1STEP", {8}, {8.5}}},
          .memory = {}};
}

TEST_CASE("Recorded steps contain compute times without waits for tensor-parallel ranks",
          "[loop][recorded]") {
  const models::RecordedSteps record = trace::record_of({{step_of(1, 0), step_of(1.5, 0.25)}}, 3);
  CHECK(record.numbers == std::vector{3, 4});
  REQUIRE(record.operations.size() == 3);  // without the transfer, whose duration is waiting
  using Operation = models::RecordedOperation;
  CHECK(record.operations[0] == Operation{0, 0, *plan::parse_instruction("0F0"), {1, 1.5}});
  CHECK(record.operations[1] == Operation{0, 1, *plan::parse_instruction("1B0"), {4, 3.75}});
  CHECK(record.operations[2] == Operation{0, 1, *plan::parse_instruction("1STEP"), {0.5, 0.5}});
}

/// Returns a forward on each of two ranks and the transfer between them, which takes `seconds`; the
/// second rank computes something else until `busy_until`.
plan::Timeline transfer_of(double seconds, double busy_until) {
  return {.name = "measured",
          .ranks = 2,
          .length = {20},
          .spans = {{0, plan::Row::Compute, "0F0", {0}, {2}},
                    {0, plan::Row::Send, "0SEND_F0", {2}, {2.001}},
                    {1, plan::Row::Compute, "1B7", {0}, {busy_until}},
                    {1, plan::Row::Receive, "1RECV_F0", {1}, {std::max(2 + seconds, busy_until)}},
                    {1, plan::Row::Compute, "1F0", {10}, {11}}},
          .memory = {}};
}

TEST_CASE("Recorded steps contain each pipeline, and transfers for which only the receiver waited",
          "[loop][recorded]") {
  const auto sends = [](const std::vector<plan::Timeline>& steps) {
    std::vector<double> seconds;
    for (const auto& operation : trace::record_of({steps}).operations)
      if (plan::is_send(operation.instruction.kind))
        seconds = operation.seconds;
    return seconds;
  };
  using Seconds = std::vector<double>;
  CHECK(sends({transfer_of(1, 0.5), transfer_of(3, 2)}) == Seconds{1, 3});
  // The receiver was computing when it arrived, so it counts as the median of the others.
  CHECK(sends({transfer_of(1, 0.5), transfer_of(3, 1), transfer_of(2, 8)}) == Seconds{1, 3, 2});
  CHECK(sends({transfer_of(1, 0.5), transfer_of(3, 7), transfer_of(2, 8)}).empty());

  const auto record = trace::record_of(
      {{transfer_of(1, 0.5), transfer_of(3, 1)}, {transfer_of(2, 0.5), transfer_of(2, 1)}});
  REQUIRE(record.operations.size() == 8);
  CHECK(record.operations[1].seconds == Seconds{1, 3});
  CHECK(record.operations[5].replica == 1);
  CHECK(record.operations[5].rank == 0);  // the sender's
  CHECK(to_string(record.operations[5].instruction) == "0SEND_F0");
  CHECK(record.operations[5].seconds == Seconds{2, 2});
}

TEST_CASE("Recorded steps are found as a table, or in the folder of a run", "[loop][recorded]") {
  const test::TempFolder folder;
  const auto read = [&](const std::filesystem::path& path) { return trace::read_record(path); };
  const std::string nothing = test::error_of([&] { read(folder.path()); });
  CHECK(nothing == folder.path().string() +
                       ": has no steps.csv: `pipewright run` writes one with all measured steps");
  const auto record = trace::record_of({{step_of(1, 0), step_of(2, 0)}});
  plan::write_file(folder.path() / "steps.csv", models::to_csv(record));
  CHECK(read(folder.path()) == record);
  CHECK(read(folder.path() / "steps.csv") == record);
}

}  // namespace recorded_days_test
