#include "pipewright/plan/program/crossed_transfers.hpp"

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/program_csv.hpp"
#include "support/catch.hpp"

namespace crossed_transfers_test {

using namespace pipewright::plan;

TEST_CASE("A receive in another order than the sends is reported", "[plan][program]") {
  const Program program = program_from_csv(
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F1,1RECV_F0,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n",
      "p.csv");
  const auto crossed = crossed_transfers(program);
  REQUIRE(crossed.size() == 1);
  CHECK(to_string(crossed.front()) ==
        "rank 0 sends 0SEND_F0 where rank 1 receives 1RECV_F1: an in-order queue would swap the "
        "tensors");
}

TEST_CASE("Our own Programs have no crossed transfers, with late or early receives",
          "[plan][program]") {
  int checked = 0;
  for (const std::string& name : schedule_names())
    for (const int ranks : {2, 3, 4, 8})
      for (const int microbatches : {2, 4, 6, 8, 16})
        for (const int chunks : {0, 2, 4})
          for (const auto receives : {ReceivePlacement::JustInTime, ReceivePlacement::WithSend}) {
            ScheduleRequest request;
            request.name = name;
            request.ranks = ranks;
            request.microbatches = microbatches;
            request.chunks = chunks;
            LoweringOptions options = lowering_of(request);
            options.receives = receives;
            Program program;
            try {
              program = lower(make_schedule(request), options);
            } catch (const InputError&) {
              continue;  // the schedule does not accept these sizes
            }
            CAPTURE(name, ranks, microbatches, chunks);
            REQUIRE(crossed_transfers(program).empty());
            ++checked;
          }
  CHECK(checked > 500);
}

}  // namespace crossed_transfers_test
