#include <algorithm>
#include <nlohmann/json.hpp>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "support/catch.hpp"
#include "support/reference.hpp"

namespace schedule_table_reference_test {

// Compares further data of other toolkits about their orders: numbers of warm-up forwards, tables,
// declared orders, and the transfers that they run.

using namespace pipewright::plan;
using namespace pipewright::test;

using Orders = std::vector<std::vector<std::string>>;

int number(const ReferenceRow& row, const std::string& column) { return std::stoi(row.at(column)); }

Orders cells_of_program(const Program& program) {
  Orders rows;
  for (const auto& list : program.ranks) {
    auto& row = rows.emplace_back();
    for (const Instruction& i : list)
      row.push_back(to_string(i));
  }
  return rows;
}

/// Splits "(0SEND_F1;0RECV_B0)P2P" into two cells.
Orders without_batches(const Orders& orders) {
  constexpr std::string_view tail = ")P2P";
  Orders flat;
  for (const auto& row : orders) {
    auto& cells = flat.emplace_back();
    for (std::string cell : row) {
      if (cell.front() != '(') {
        cells.push_back(cell);
        continue;
      }
      REQUIRE(cell.substr(cell.size() - tail.size()) == tail);
      cell = cell.substr(1, cell.size() - 1 - tail.size());
      for (auto end = cell.find(';'); end != std::string::npos; end = cell.find(';')) {
        cells.push_back(cell.substr(0, end));
        cell = cell.substr(end + 1);
      }
      cells.push_back(cell);
    }
  }
  return flat;
}

Schedule schedule_of(const ReferenceSchedule& reference, const std::string& name) {
  return make_schedule(request_of(reference, name));
}

/// Compares every configuration of a file with the result of `ours`, after `theirs` has converted
/// it to the same form.
template <class Ours, class Theirs>
void compare(const std::string& name, const Ours& ours, const Theirs& theirs) {
  std::size_t matching = 0;
  const auto references = reference_schedules("schedules/" + name);
  for (const ReferenceSchedule& reference : references) {
    INFO(name << ": P " << reference.columns.at("P") << ", M " << reference.columns.at("M")
              << ", V " << reference.columns.at("V"));
    const Orders mine = ours(reference);
    const Orders other = theirs(reference.ranks);
    CHECK(mine == other);
    matching += mine == other;
  }
  report_equal(name, matching, references.size());
}

Orders unchanged(const Orders& orders) { return orders; }

/// Compares transfers directly before and after their actions, and reductions at the end.
void compare_transfers(const std::string& file, const std::string& name) {
  compare(
      file,
      [&](const ReferenceSchedule& reference) {
        const Program program = from_schedule(schedule_of(reference, name), {});
        return cells_of_program(with_reductions(with_transfers(program), {.replicas = 2}));
      },
      without_batches);
}

TEST_CASE("Every rank has as many warm-up forwards as in Megatron-LM", "[plan][reference]") {
  std::size_t matching = 0, all = 0;
  for_each_row("schedules/megatron_warmup.csv", [&](const ReferenceRow& row) {
    ScheduleRequest request;
    request.name = row.at("schedule") == "1F1B" ? "1f1b" : "megatron-interleaved";
    request.ranks = number(row, "P");
    request.microbatches = number(row, "M");
    request.chunks = number(row, "V");
    if (!row.at("group_size").empty())
      request.group = number(row, "group_size");
    INFO(row.at("schedule") << ": P " << request.ranks << ", M " << request.microbatches << ", V "
                            << request.chunks << ", group " << request.group << ", rank "
                            << row.at("rank"));
    const Schedule schedule = make_schedule(request);
    const auto& actions = schedule.ranks[static_cast<std::size_t>(number(row, "rank"))];
    const auto first_backward = std::find_if(actions.begin(), actions.end(), [](const Action& a) {
      return a.kind == ActionKind::Backward;
    });
    const auto leading = static_cast<int>(first_backward - actions.begin());
    // If any microbatches remain, the first action for them is also a forward.
    const bool same = leading == number(row, "warmup") + (number(row, "remaining") > 0 ? 1 : 0) &&
                      number(row, "total") == static_cast<int>(actions.size() / 2);
    CHECK(same);
    matching += same;
    ++all;
  });
  report_equal("megatron_warmup.csv", matching, all);
}

TEST_CASE("Chunks and microbatches follow the order of Megatron-LM's table", "[plan][reference]") {
  std::size_t matching = 0;
  const auto tables = reference_cases("schedules/megatron_schedule_table.json");
  for (const auto& table : tables) {
    const int M = table.at("num_microbatches"), V = table.at("num_model_chunks");
    const int group = table.at("group_size");
    // On a single rank, a stage is a chunk and every group is valid.
    const Schedule schedule = make_megatron_interleaved(1, M, V, std::min(group, M));
    std::vector<std::vector<int>> forwards;
    for (const Action& a : schedule.ranks[0])
      if (a.kind == ActionKind::Forward)
        forwards.push_back({a.microbatch, a.stage});
    INFO("M " << M << ", V " << V << ", group " << group);
    const bool same = forwards == table.at("microbatch_id_and_chunk_id");
    CHECK(same);
    matching += same;
  }
  report_equal("megatron_schedule_table.json", matching, tables.size());
}

TEST_CASE("gpipe with reductions equals the order that torch's GPipe declares",
          "[plan][reference]") {
  compare(
      "torch_pipeline_order_GPipe.csv",
      [](const ReferenceSchedule& reference) {
        const Program program = from_schedule(schedule_of(reference, "gpipe"), {});
        return cells_of_program(with_reductions(program, {.replicas = 2}));
      },
      unchanged);
}

TEST_CASE(
    "1f1b with reductions equals the order that torch's 1F1B declares, except on its last rank",
    "[plan][reference]") {
  // There, torch declares forwards 1 to M, which do not exist; it runs 0 to M - 1, as we do.
  compare(
      "torch_pipeline_order_1F1B.csv",
      [](const ReferenceSchedule& reference) {
        Program program = from_schedule(schedule_of(reference, "1f1b"), {});
        for (Instruction& i : program.ranks.back())
          i.microbatch += i.kind == InstructionKind::Forward;
        return cells_of_program(with_reductions(program, {.replicas = 2}));
      },
      unchanged);
}

TEST_CASE("interleaved-1f1b equals the zero-bubble project's Interleaved1F1B",
          "[plan][reference]") {
  compare(
      "zerobubble_Interleaved1F1B.csv",
      [](const ReferenceSchedule& reference) {
        const int M = reference.number("M");
        // For a single microbatch, that project always makes two chunks.
        const int chunks = M == 1 ? 2 : reference.number("V");
        return cells_of(make_interleaved_1f1b(reference.number("P"), M, chunks));
      },
      unchanged);
}

TEST_CASE("GPipe's transfers and reductions are where torch runs them", "[plan][reference]") {
  compare_transfers("torch_executed_p2p_GPipe.csv", "gpipe");
}
TEST_CASE("1F1B's transfers and reductions are where torch runs them", "[plan][reference]") {
  compare_transfers("torch_executed_p2p_1F1B.csv", "1f1b");
}
TEST_CASE("An inference's transfers are where torch runs them", "[plan][reference]") {
  compare_transfers("torch_executed_p2p_ForwardOnly.csv", "inference");
}

}  // namespace schedule_table_reference_test
