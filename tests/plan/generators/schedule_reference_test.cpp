#include <algorithm>
#include <functional>

#include "pipewright/plan/generators/deepspeed.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/lower/program_csv.hpp"
#include "pipewright/plan/schedules/backward_passes.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/reference.hpp"

namespace schedule_reference_test {

// Each reference file of another toolkit is one test: its orders must equal ours action by action.

using namespace pipewright::plan;
using namespace pipewright::test;

std::string label(const ReferenceSchedule& reference) {
  return "P " + reference.columns.at("P") + ", M " + reference.columns.at("M") + ", V " +
         reference.columns.at("V");
}

using Orders = std::vector<std::vector<std::string>>;

/// Compares every configuration of a file with the result of `ours`.
void compare(const std::string& name, const std::function<Orders(const ReferenceSchedule&)>& ours,
             const std::vector<std::string>& keys = {}) {
  std::size_t matching = 0;
  const auto references = reference_schedules("schedules/" + name, keys);
  for (const ReferenceSchedule& reference : references) {
    INFO(name << ": " << label(reference));
    const Orders orders = ours(reference);
    CHECK(orders == reference.ranks);
    matching += orders == reference.ranks;
  }
  report_equal(name, matching, references.size());
}

void compare_schedule(const std::string& file, const std::string& name,
                      const std::vector<std::string>& keys = {}) {
  compare(
      file,
      [&](const ReferenceSchedule& reference) {
        auto request = request_of(reference, name);
        if (reference.columns.contains("group_size"))
          request.group = reference.number("group_size");
        // zero-bubble's set-ups: "f=1 b=1 w=1 c=0 group_size=2"
        if (const auto setup = reference.columns.find("setup"); setup != reference.columns.end())
          if (const auto at = setup->second.find("group_size="); at != std::string::npos)
            request.group = std::stoi(setup->second.substr(at + std::string("group_size=").size()));
        return cells_of(make_schedule(request));
      },
      keys);
}

Orders cells_of(const Program& program) {
  Orders rows;
  for (const auto& instructions : program.ranks) {
    Program one = program;
    one.ranks = {instructions};
    auto& row = rows.emplace_back();
    std::string cell;
    for (const char c : to_csv(one))
      if (c == ',' || c == '\n') {
        if (!cell.empty())
          row.push_back(cell);
        cell.clear();
      } else {
        cell += c;
      }
  }
  return rows;
}

/// Returns torch's whole lowering, or only its sends and receives.
Program torch_program(const Schedule& schedule, bool sharded) {
  return sharded ? lower_as_torch(schedule) : with_early_receives(from_schedule(schedule, {}));
}

void compare_lowered(const std::string& file, const std::string& name, bool sharded) {
  compare(file, [&](const ReferenceSchedule& reference) {
    return cells_of(torch_program(make_schedule(request_of(reference, name)), sharded));
  });
}

void compare_merged(const std::string& file, const std::string& name) {
  compare(file, [&](const ReferenceSchedule& reference) {
    return pipewright::test::cells_of(merge_backwards(make_schedule(request_of(reference, name))));
  });
}

/// Compares DeepSpeed's files, which have a row per step with all its instructions.
void compare_streams(const std::string& name,
                     const std::function<DeepSpeedStream(int, int)>& stream_of) {
  std::map<std::pair<int, int>, Orders> references;
  for_each_row("schedules/" + name, [&](const ReferenceRow& row) {
    auto& ranks = references[{std::stoi(row.at("P")), std::stoi(row.at("M"))}];
    ranks.resize(std::max(ranks.size(), static_cast<std::size_t>(std::stoi(row.at("rank"))) + 1));
    ranks[static_cast<std::size_t>(std::stoi(row.at("rank")))].push_back(row.at("instructions"));
  });
  std::size_t matching = 0;
  for (const auto& [sizes, reference] : references) {
    INFO(name << ": P " << sizes.first << ", M " << sizes.second);
    Orders ours;
    for (const auto& steps : stream_of(sizes.first, sizes.second).ranks) {
      auto& row = ours.emplace_back();
      for (const auto& step : steps) {
        std::string text;
        for (const Instruction& i : step)
          text += (text.empty() ? "" : ";") + deepspeed_text(i);
        row.push_back(text);
      }
    }
    CHECK(ours == reference);
    matching += ours == reference;
  }
  report_equal(name, matching, references.size());
}

TEST_CASE("gpipe equals torch's GPipe", "[plan][reference]") {
  compare_schedule("torch_GPipe.csv", "gpipe");
}
TEST_CASE("1f1b equals the order that torch's 1F1B executes", "[plan][reference]") {
  compare_schedule("torch_1F1B.csv", "1f1b");
}
TEST_CASE("1f1b equals Megatron-LM's, also with fewer microbatches than ranks",
          "[plan][reference]") {
  compare_schedule("megatron_1F1B.csv", "1f1b");
}
TEST_CASE("1f1b equals zero-bubble's 1F1B", "[plan][reference]") {
  compare_schedule("zerobubble_1F1B.csv", "1f1b");
}
TEST_CASE("inference equals torch's forward-only order", "[plan][reference]") {
  compare_schedule("torch_ForwardOnly.csv", "inference");
}
TEST_CASE("interleaved-1f1b equals torch's Interleaved1F1B", "[plan][reference]") {
  compare_schedule("torch_Interleaved1F1B.csv", "interleaved-1f1b");
}
TEST_CASE("megatron-interleaved equals Megatron-LM's with its own group size",
          "[plan][reference]") {
  compare_schedule("megatron_Interleaved1F1B.csv", "megatron-interleaved");
}
TEST_CASE("megatron-interleaved equals Megatron-LM's with other group sizes", "[plan][reference]") {
  compare_schedule("megatron_Interleaved1F1B_group_size.csv", "megatron-interleaved",
                   {"group_size"});
}
TEST_CASE("looped-bfs equals torch's LoopedBFS", "[plan][reference]") {
  compare_schedule("torch_LoopedBFS.csv", "looped-bfs");
}
TEST_CASE("interleaved-zb equals torch's InterleavedZeroBubble", "[plan][reference]") {
  compare_schedule("torch_InterleavedZeroBubble.csv", "interleaved-zb");
}
TEST_CASE("zbv equals torch's ZBVZeroBubble", "[plan][reference]") {
  compare_schedule("torch_ZBVZeroBubble.csv", "zbv");
}
TEST_CASE("dualpipev equals torch's DualPipeV", "[plan][reference]") {
  compare_schedule("torch_DualPipeV.csv", "dualpipev");
}
TEST_CASE("dualpipev equals DeepSeek's DualPipeV", "[plan][reference]") {
  compare_schedule("dualpipe_DualPipeV.csv", "dualpipev");
}
TEST_CASE("dualpipe equals DeepSeek's DualPipe", "[plan][reference]") {
  compare_schedule("dualpipe_DualPipe.csv", "dualpipe");
}

// The reference joins adjacent I and W and takes the newest pending W, ours the oldest. The actions
// that other ranks wait for, forwards and input gradients, have the same order.
TEST_CASE("1f1b-v equals zero-bubble's 1F1B-V", "[plan][reference]") {
  compare_schedule("zerobubble_1F1B-V.csv", "1f1b-v", {"setup"});
}
TEST_CASE("group-interleaved-1f1b equals zero-bubble's, with its group sizes",
          "[plan][reference]") {
  compare_schedule("zerobubble_GroupInterleaved1F1B.csv", "group-interleaved-1f1b", {"setup"});
}

TEST_CASE("zb-h1 equals zero-bubble's ZB-H1 with its B split", "[plan][reference]") {
  std::size_t matching = 0;
  const auto references = reference_schedules("schedules/zerobubble_ZB-H1.csv");
  for (const ReferenceSchedule& reference : references) {
    INFO("zerobubble_ZB-H1.csv: " << label(reference));
    Orders halves;
    for (const auto& row : reference.ranks) {
      auto& cells = halves.emplace_back();
      for (std::string cell : row) {
        const auto backward = cell.find('B');
        if (backward != std::string::npos)
          cell[backward] = 'I';
        cells.push_back(cell);
        if (backward != std::string::npos)
          cells.push_back(cell.replace(backward, 1, "W"));
      }
    }
    const bool same =
        halves == pipewright::test::cells_of(make_schedule(request_of(reference, "zb-h1")));
    CHECK(same);
    matching += same;
  }
  report_equal("zerobubble_ZB-H1.csv", matching, references.size());
}

TEST_CASE("Merging I and W into B equals torch's pass: InterleavedZeroBubble",
          "[plan][reference]") {
  compare_merged("torch_merge_bw_InterleavedZeroBubble.csv", "interleaved-zb");
}
TEST_CASE("Merging I and W into B equals torch's pass: ZBVZeroBubble", "[plan][reference]") {
  compare_merged("torch_merge_bw_ZBVZeroBubble.csv", "zbv");
}

TEST_CASE("Early receives equal torch's: Interleaved1F1B", "[plan][reference]") {
  compare_lowered("torch_sendrecv_Interleaved1F1B.csv", "interleaved-1f1b", false);
}
TEST_CASE("Early receives equal torch's: InterleavedZeroBubble", "[plan][reference]") {
  compare_lowered("torch_sendrecv_InterleavedZeroBubble.csv", "interleaved-zb", false);
}
TEST_CASE("Early receives equal torch's: LoopedBFS", "[plan][reference]") {
  compare_lowered("torch_sendrecv_LoopedBFS.csv", "looped-bfs", false);
}
TEST_CASE("Early receives equal torch's: ZBVZeroBubble", "[plan][reference]") {
  compare_lowered("torch_sendrecv_ZBVZeroBubble.csv", "zbv", false);
}
TEST_CASE("Early receives equal torch's: DualPipeV", "[plan][reference]") {
  compare_lowered("torch_sendrecv_DualPipeV.csv", "dualpipev", false);
}
TEST_CASE("Sharded parameters are lowered as torch does: Interleaved1F1B", "[plan][reference]") {
  compare_lowered("torch_lowered_Interleaved1F1B.csv", "interleaved-1f1b", true);
}
TEST_CASE("Sharded parameters are lowered as torch does: InterleavedZeroBubble",
          "[plan][reference]") {
  compare_lowered("torch_lowered_InterleavedZeroBubble.csv", "interleaved-zb", true);
}
TEST_CASE("Sharded parameters are lowered as torch does: LoopedBFS", "[plan][reference]") {
  compare_lowered("torch_lowered_LoopedBFS.csv", "looped-bfs", true);
}
TEST_CASE("Sharded parameters are lowered as torch does: ZBVZeroBubble", "[plan][reference]") {
  compare_lowered("torch_lowered_ZBVZeroBubble.csv", "zbv", true);
}
TEST_CASE("Sharded parameters are lowered as torch does: DualPipeV", "[plan][reference]") {
  compare_lowered("torch_lowered_DualPipeV.csv", "dualpipev", true);
}

TEST_CASE("deepspeed-train equals DeepSpeed's TrainSchedule, step by step", "[plan][reference]") {
  compare_streams("deepspeed_TrainSchedule.csv", deepspeed_train);
}
TEST_CASE("deepspeed-inference equals DeepSpeed's InferenceSchedule", "[plan][reference]") {
  compare_streams("deepspeed_InferenceSchedule.csv", deepspeed_inference);
}
TEST_CASE("data-parallel equals DeepSpeed's DataParallelSchedule", "[plan][reference]") {
  compare_streams("deepspeed_DataParallelSchedule.csv", deepspeed_data_parallel);
}

TEST_CASE("The numbers of buffers and steps equal DeepSpeed's", "[plan][reference]") {
  const std::map<std::string, std::function<DeepSpeedStream(int, int)>> makers{
      {"TrainSchedule", deepspeed_train},
      {"InferenceSchedule", deepspeed_inference},
      {"DataParallelSchedule", deepspeed_data_parallel}};
  std::size_t matching = 0, all = 0;
  for_each_row("schedules/deepspeed_buffers.csv", [&](const ReferenceRow& row) {
    const auto maker = makers.find(row.at("schedule"));
    if (maker == makers.end())
      return;  // DeepSpeed's DualPipeV has other steps than DeepSeek's
    const auto stream = maker->second(std::stoi(row.at("P")), std::stoi(row.at("M")));
    const auto rank = static_cast<std::size_t>(std::stoi(row.at("rank")));
    const bool same =
        stream.buffers[rank] == std::stoi(row.at("num_pipe_buffers")) &&
        stream.ranks[rank].size() == static_cast<std::size_t>(std::stoi(row.at("num_steps")));
    INFO(row.at("schedule") << " P " << row.at("P") << " M " << row.at("M") << " rank " << rank);
    CHECK(same);
    matching += same;
    ++all;
  });
  report_equal("deepspeed_buffers.csv", matching, all);
}

TEST_CASE("Sizes that torch rejects are rejected, except for 1F1B with M < P",
          "[plan][reference]") {
  const std::map<std::string, std::string> names{{"Interleaved1F1B", "interleaved-1f1b"},
                                                 {"InterleavedZeroBubble", "interleaved-zb"},
                                                 {"DualPipeV", "dualpipev"},
                                                 {"ZBVZeroBubble", "zbv"},
                                                 {"LoopedBFS", "looped-bfs"},
                                                 {"1F1B", "1f1b"}};
  std::size_t refused = 0, all = 0;
  for_each_row("schedules/torch_rejected.csv", [&](const ReferenceRow& row) {
    ScheduleRequest request;
    request.name = names.at(row.at("schedule"));
    request.ranks = std::stoi(row.at("P"));
    request.microbatches = std::stoi(row.at("M"));
    request.chunks = std::stoi(row.at("V"));
    INFO(row.at("schedule") << " P " << row.at("P") << " M " << row.at("M"));
    if (request.name == "1f1b") {
      CHECK_NOTHROW(make_schedule(request));
      return;
    }
    ++all;
    const bool no = error_of([&] { make_schedule(request); }) != "no error";
    CHECK(no);
    refused += no;
  });
  report_equal("torch_rejected.csv", refused, all);
}

TEST_CASE("Sizes that Megatron-LM and DualPipe reject are rejected", "[plan][reference]") {
  for (const std::string name : {"megatron_rejected.csv", "dualpipe_rejected.csv"}) {
    const std::map<std::string, std::string> names{{"Interleaved1F1B", "megatron-interleaved"},
                                                   {"DualPipe", "dualpipe"},
                                                   {"DualPipeV", "dualpipev"}};
    std::size_t refused = 0, all = 0;
    for_each_row("schedules/" + name, [&](const ReferenceRow& row) {
      ScheduleRequest request;
      request.name = names.at(row.at("schedule"));
      request.ranks = std::stoi(row.at("P"));
      request.microbatches = std::stoi(row.at("M"));
      request.chunks = std::stoi(row.at("V"));
      if (row.contains("group_size"))
        request.group = std::stoi(row.at("group_size"));
      INFO(name << " P " << row.at("P") << " M " << row.at("M") << " group " << request.group);
      const bool no = error_of([&] { make_schedule(request); }) != "no error";
      CHECK(no);
      ++all;
      refused += no;
    });
    report_equal(name, refused, all);
  }
}

}  // namespace schedule_reference_test
