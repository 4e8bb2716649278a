#include "pipewright/loop/recorded_days.hpp"

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

TEST_CASE("A record of measured steps is what ranks computed, without waits among shards",
          "[loop][recorded]") {
  const plan::RecordedSteps record = loop::record_of({step_of(1, 0), step_of(1.5, 0.25)}, 3);
  CHECK(record.numbers == std::vector{3, 4});
  REQUIRE(record.operations.size() == 3);  // what a transfer took is waiting
  using Operation = plan::RecordedOperation;
  CHECK(record.operations[0] == Operation{0, 0, *plan::parse_instruction("0F0"), {1, 1.5}});
  CHECK(record.operations[1] == Operation{0, 1, *plan::parse_instruction("1B0"), {4, 3.75}});
  CHECK(record.operations[2] == Operation{0, 1, *plan::parse_instruction("1STEP"), {0.5, 0.5}});
}

TEST_CASE("A record is found as a table, or in the folder of a run", "[loop][recorded]") {
  const test::TempFolder folder;
  const auto read = [&](const std::filesystem::path& path) { return loop::read_record(path); };
  const std::string nothing = test::error_of([&] { read(folder.path()); });
  CHECK(nothing == folder.path().string() +
                       ": has no steps.csv: `pipewright run` leaves one, of all the steps that it "
                       "measured");
  const auto record = loop::record_of({step_of(1, 0), step_of(2, 0)});
  plan::write_file(folder.path() / "steps.csv", plan::to_csv(record));
  CHECK(read(folder.path()) == record);
  CHECK(read(folder.path() / "steps.csv") == record);
}

}  // namespace recorded_days_test
