// Schedules in users' files: which are accepted, and which are rejected with which position.

#include "pipewright/plan/generators/schedule_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <random>
#include <regex>

#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/lower/program_csv.hpp"
#include "pipewright/plan/program/validate_program.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/make_schedule.hpp"
#include "support/temp_folder.hpp"

namespace schedule_file_test {

using namespace pipewright::plan;
using pipewright::test::error_of;
using pipewright::test::make;

/// Lowers the Program of a file at the file's own sizes.
Program lowered(const ScheduleChoice& choice, const LoweringOptions& options = {}) {
  const FixedSizes& sizes = *choice.own->only;
  ScheduleRequest request;
  request.name = choice.name;
  request.own = choice.own;
  request.ranks = sizes.ranks;
  request.microbatches = sizes.microbatches;
  return lower(request, make_training_schedule(request), options);
}

Program lowered(const std::string& text, const LoweringOptions& options = {}) {
  return lowered(schedule_from_text(text, "my.csv"), options);
}

TEST_CASE("Every schedule in either of torch's CSV formats gives the Program of its name",
          "[plan][schedule]") {
  int checked = 0;
  for (const ScheduleDescriptor& entry : schedules()) {
    if (!entry.trains_batch())
      continue;
    INFO(entry.name);
    const Schedule schedule = make(entry.name, 4, 8);
    for (const LoweringOptions& options :
         {LoweringOptions{},
          LoweringOptions{.replicas = 2, .gradient_norm = true, .share_loss = true},
          LoweringOptions{.communicators = CommunicatorLayout::Rank,
          .blocking = true,
          .replicas = 3,
          .zero = 1}}) {
      const Program named = lower(schedule, options);
      CHECK(lowered(to_csv(schedule), options) == named);
      CHECK(lowered(to_csv(named), options) == named);
      ++checked;
    }
  }
  CHECK(checked > 40);
}

TEST_CASE("Transfers in a file stay where they are", "[plan][schedule]") {
  const Schedule schedule = make("1f1b", 3, 6);
  const Program early = lower(schedule, {.receives = ReceivePlacement::WithSend});
  CHECK(early != lower(schedule));
  CHECK(lowered(to_csv(early)) == early);
  CHECK(lowered(to_csv(lower_as_torch(schedule)), {.recompute = RecomputeMode::Selective})
            .selective_recompute);
  CHECK(error_of([&] {
          lowered(to_csv(early), {.recompute = RecomputeMode::Full});
        }).find("my.csv: recomputes nothing, but training.recompute is full") == 0);
}

TEST_CASE("A Program's file gives the Program unchanged", "[plan][schedule]") {
  const Program program =
      lower(make("dualpipe", 4, 8), {.transfers = TransferMode::Rendezvous, .share_loss = true});
  const std::string text = to_json(program).dump(1);
  const ScheduleChoice read = schedule_from_text(text, "program.json");
  CHECK(*read.own->program == program);
  CHECK(lowered(read, {.transfers = TransferMode::Rendezvous}) == program);
  CHECK(read == schedule_from_text(text, "program.json"));
  CHECK(read.own->only->stages == 4);
}

TEST_CASE("A file is rejected with position, rank and action", "[plan][schedule]") {
  const auto refusal = [](const std::string& text) {
    return error_of([&] { schedule_from_text(text, "my.csv"); });
  };
  CHECK(refusal("0F0,0X0\n").find("my.csv:1:2: \"0X0\" is not an action") == 0);
  CHECK(refusal("0F0,0SEND_F0\n1RECV_F0,1G0\n").find("my.csv:2:2: \"1G0\" is not an instruction") ==
        0);
  CHECK(refusal("").find("my.csv:1:1: no action in the file") == 0);
  CHECK(refusal("0F0,0B0\n\n") ==
        "my.csv is not sound:\nrank 1 has no action: an empty row is also a rank, and each needs a "
        "stage");
  CHECK(refusal("0F0,0B0\n1B0,1F0\n").find("my.csv is not sound:\ndeadlock: rank 1 at 1B0") == 0);
  CHECK(refusal("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n") ==
        "my.csv is not sound:\nrank 0, 0SEND_F0: the other end is missing: 1RECV_F0 is missing on "
        "rank "
        "1");
  CHECK(
      refusal("{\"format\": 3}").find("my.csv:1:2: /format: pipewright/program/2 is needed here") ==
      0);
  const std::string other = to_json(lower(make("1f1b", 2, 2))).dump();
  CHECK(refusal(std::regex_replace(other, std::regex("0RECV_B0#0"), "0RECV_B1#0"))
            .find(": /ranks: rank 0, 0RECV_B1: occurs more than once") != std::string::npos);
}

TEST_CASE("A path that is not a regular file is rejected without being read", "[plan][schedule]") {
  const pipewright::test::TempFolder folder;
  CHECK(error_of([&] {
          schedule_from_file(folder.path() / "none.csv");
        }).find("none.csv: there is no such file") != std::string::npos);
  CHECK(error_of([&] { schedule_from_file(folder.path()); }).find("there is no such file") !=
        std::string::npos);
  CHECK(error_of([&] { schedule_from_file("/dev/zero"); }) == "/dev/zero: there is no such file");
  CHECK(schedule_from_file(folder.write("a.csv", "0F0,0B0\n")).label() == "a.csv");
  CHECK(names_schedule_file("a.csv"));
  CHECK(names_schedule_file("folder/a"));
  CHECK_FALSE(names_schedule_file("zb-h1"));
}

// ---- files with one mistake

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(const std::string& text) {
  Rows rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream row(line);
    rows.emplace_back();
    for (std::string cell; std::getline(row, cell, ',');)
      rows.back().push_back(cell);
  }
  return rows;
}

std::string text_of(const Rows& rows) {
  std::string text;
  for (const auto& row : rows)
    text += fmt::format("{}\n", fmt::join(row, ","));
  return text;
}

class Spoiler {
 public:
  explicit Spoiler(unsigned seed) : random_(seed) {}

  std::string spoilt(const std::string& good) {
    std::string text = good;
    for (std::size_t times = 1 + below(3); times > 0; --times)
      text = below(2) == 0 ? with_byte(text) : with_cell(text);
    return text;
  }

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  std::string with_byte(std::string text) {
    static const std::string bytes("0123456789FBIWRSEND_,;()\n\" -\0\xff", 32);
    const std::size_t at = below(text.size() + 1);
    switch (below(3)) {
      case 0:
        return text.insert(at, 1, bytes[below(bytes.size())]);
      case 1:
        return at < text.size() ? text.erase(at, 1 + below(4)) : text;
      default:
        if (at < text.size())
          text[at] = bytes[below(bytes.size())];
        return text;
    }
  }

  /// Moves, duplicates, deletes or swaps cells, or whole rows.
  std::string with_cell(const std::string& text) {
    Rows rows = rows_of(text);
    if (rows.empty())
      return text;
    auto& row = rows[below(rows.size())];
    auto& other = rows[below(rows.size())];
    switch (below(5)) {
      case 0:
        std::swap(row, other);
        break;
      case 1:
        rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(below(rows.size())));
        break;
      case 2:
        if (!row.empty() && !other.empty())
          std::swap(row[below(row.size())], other[below(other.size())]);
        break;
      case 3:
        if (!row.empty())
          row.erase(row.begin() + static_cast<std::ptrdiff_t>(below(row.size())));
        break;
      default:
        if (!row.empty())
          other.push_back(row[below(row.size())]);
        break;
    }
    return text_of(rows);
  }

  std::mt19937 random_;
};

/// Returns true if an error message has a position: row and column, or the file with rank or stage.
bool says_where(const std::string& error) {
  static const std::regex place("^my\\.csv:[0-9]+:[0-9]+: ");
  static const std::regex unsound(
      "^my\\.csv is not sound:\n.*(rank [0-9]+|stage [0-9]+|[0-9]+ stages)");
  return std::regex_search(error, place) || std::regex_search(error, unsound);
}

TEST_CASE("A file with a mistake is valid, or is rejected with its position", "[plan][schedule]") {
  Spoiler spoiler(7);
  int sound = 0, refused = 0;
  for (const std::string name : {"1f1b", "zb-h1", "dualpipev", "interleaved-1f1b"}) {
    const Schedule schedule = make(name, 2, 4);
    for (const std::string& good :
         {to_csv(schedule), to_csv(lower(schedule)), to_csv(lower_as_torch(schedule))})
      for (int round = 0; round < 400; ++round) {
        const std::string text = spoiler.spoilt(good);
        INFO(text);
        const std::string error = error_of([&] {
          const Program program = lowered(text);
          REQUIRE_NOTHROW(validate(program, CommunicatorLayout::Edge, TransferMode::Eager));
        });
        ++(error == "no error" ? sound : refused);
        if (error != "no error") {
          INFO(error);
          REQUIRE(says_where(error));
        }
      }
  }
  CHECK(sound > 200);  // mistakes between cells, or an order that also runs
  CHECK(refused > 2000);
}

}  // namespace schedule_file_test
