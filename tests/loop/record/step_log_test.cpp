#include "pipewright/loop/record/step_log.hpp"

#include <cmath>
#include <fstream>

#include "support/catch.hpp"
#include "support/temp_folder.hpp"

namespace step_log_test {

using namespace pipewright;
using loop::StepLine;
using test::TempFolder;

const StepLine third{3, 20, 4.25, 0.5, 2048, "tokens"};

TEST_CASE("A step is one line of JSON and round-trips", "[loop][steps]") {
  CHECK(to_line(third) ==
        R"({"step":3,"steps":20,"loss":4.25,"seconds":0.5,"tokens_per_s":2048.0})");
  CHECK(loop::parse_step_line(to_line(third)) == third);
}

TEST_CASE("Optional figures of a step follow its throughput", "[loop][steps]") {
  StepLine known = third;
  known.learning_rate = 0.5;
  known.gradient_norm = 2;
  known.evaluation_loss = 0;
  known.mfu = 0.25;
  known.bubble = 0.125;
  known.peak_bytes = 4096;
  known.waiting = {{"transfer", 0.5}, {"warm-up", 1}};
  known.slow = "rank 2 is slow";
  CHECK(to_line(known) ==
        R"({"step":3,"steps":20,"loss":4.25,"seconds":0.5,"tokens_per_s":2048.0,)"
        R"("learning_rate":0.5,"gradient_norm":2.0,"evaluation_loss":0.0,"mfu":0.25,)"
        R"("bubble":0.125,"peak_bytes":4096.0,"perplexity":1.0,)"
        R"("waiting_s":{"transfer":0.5,"warm-up":1.0},"slow":"rank 2 is slow"})");
  CHECK(loop::parse_step_line(to_line(known)) == known);
}

TEST_CASE("A loss that is not finite is null, and an invalid line is no step", "[loop][steps]") {
  StepLine lost = third;
  lost.loss = std::nan("");
  const auto read = loop::parse_step_line(to_line(lost));
  REQUIRE(read);
  CHECK(std::isnan(read->loss));
  for (const char* line : {"", "{", "[]", "{\"step\":1}",
                           "{\"step\":-1,\"steps\":2,\"loss\":1,"
                           "\"seconds\":1}"})
    CHECK_FALSE(loop::parse_step_line(line));
}

TEST_CASE("A reader of the file sees each step once, and no incomplete line", "[loop][steps]") {
  const TempFolder folder;
  loop::StepReader reader(folder.path() / "steps.jsonl");
  CHECK(reader.next().empty());
  {
    loop::StepLog log(folder.path());
    log.add(third);
    CHECK(reader.next() == std::vector<StepLine>{third});
    CHECK(reader.next().empty());
  }
  const std::string line = to_line(third) + "\n";
  std::ofstream more(folder.path() / "steps.jsonl", std::ios::app);
  more << "garbage\n" << line.substr(0, 10) << std::flush;
  CHECK(reader.next().empty());
  more << line.substr(10) << std::flush;
  CHECK(reader.next() == std::vector<StepLine>{third});
}

TEST_CASE("The last step's timeline is written at most once a second and removed at the end",
          "[loop][steps]") {
  const TempFolder folder;
  loop::StepLog log(folder.path());
  int asked = 0;
  const auto timeline = [&] {
    ++asked;
    return plan::Timeline{
        .name = "last step", .ranks = 1, .length = {1}, .spans = {}, .memory = {}};
  };
  log.show(timeline);
  log.show(timeline);
  CHECK(asked == 1);
  CHECK(std::filesystem::exists(folder.path() / "last_step.trace.json"));
  log.end();
  CHECK_FALSE(std::filesystem::exists(folder.path() / "last_step.trace.json"));
}

}  // namespace step_log_test
