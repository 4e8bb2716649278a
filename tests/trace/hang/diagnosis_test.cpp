// Checks hangs constructed by hand: the operations of each rank, and the diagnosis.

#include "pipewright/trace/hang/diagnosis.hpp"

#include <nlohmann/json.hpp>

#include "pipewright/plan/lower/lower.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/make_schedule.hpp"

namespace pipewright::trace::hang_diagnosis_test {

using test::error_of;
using Kind = FlightOperation::Kind;

/// Builds the record of one rank. All `ranks` ranks of the job are in one group.
class Rank {
 public:
  Rank(int rank, int ranks) {
    record_.rank = rank;
    record_.file = "nccl_trace_rank_" + std::to_string(rank);
    record_.is_whole = true;
    record_.groups.push_back({"0", "default_pg", {}});
    for (int r = 0; r < ranks; ++r)
      record_.groups[0].ranks.push_back(r);
  }
  Rank& send(int peer, bool completed = true, std::int64_t numbers = 4) {
    return add({.kind = Kind::Send,
                .name = "send",
                .peer = peer,
                .inputs = {"[" + std::to_string(numbers) + "]", "Float", numbers},
                .completed = completed});
  }
  Rank& recv(int peer, bool completed = true, std::int64_t numbers = 4) {
    return add({.kind = Kind::Receive,
                .name = "recv",
                .peer = peer,
                .outputs = {"[" + std::to_string(numbers) + "]", "Float", numbers},
                .completed = completed});
  }
  Rank& all(const char* name, bool completed = true, const char* types = "Float") {
    return add({.kind = Kind::Collective,
                .name = name,
                .sequence = ++collectives_,
                .inputs = {"[1]", types, 1},
                .outputs = {"[1]", types, 1},
                .completed = completed});
  }
  /// Leaves out what is complete, as a dump of active operations does. The next collective has this
  /// number.
  Rank& only_active(std::int64_t next) {
    record_.is_whole = false;
    collectives_ = next - 1;
    return *this;
  }
  operator FlightRecord() const { return record_; }

 private:
  Rank& add(FlightOperation operation) {
    operation.launch = static_cast<int>(record_.operations.size());
    record_.operations.push_back(std::move(operation));
    return *this;
  }
  FlightRecord record_;
  std::int64_t collectives_ = 0;
};

std::string waits_of(const HangDiagnosis& own) {
  std::string text;
  for (const HangWait& wait : own.waits)
    text += "rank " + std::to_string(wait.rank) + " at " + wait.at + " waits for rank " +
            std::to_string(wait.waits_for) + ", which " + wait.because + "\n";
  return text;
}

TEST_CASE("Hang: two ranks that first send to each other wait in a cycle", "[loop][hang]") {
  const HangDiagnosis own = diagnose_hang(
      {Rank(0, 2).send(1, false).recv(1, false), Rank(1, 2).send(0, false).recv(0, false)});
  CHECK(own.kind == HangKind::Order);
  CHECK(own.is_cycle);
  CHECK(waits_of(own) ==
        "rank 0 at send to rank 1 waits for rank 1, which has issued it after send to rank 0\n"
        "rank 1 at send to rank 0 waits for rank 0, which has issued it after send to rank 1\n");
}

TEST_CASE("Hang: the schedule shows which of two ranks changed the order", "[loop][hang]") {
  // Two microbatches of 1F1B: rank 1 sends its first gradient before it has received anything.
  const plan::Program program = plan::lower(test::make("1f1b", 2, 2));
  const HangDiagnosis own =
      diagnose_hang({Rank(0, 2).send(1, false).send(1, false).recv(1, false).recv(1, false),
                     Rank(1, 2).send(0, false).recv(0, false).recv(0, false).send(0, false)},
                    {program});
  CHECK(own.kind == HangKind::Order);
  CHECK(own.rank == 1);
  CHECK(own.instruction == "1RECV_F0");
  CHECK(own.stage == 1);
  CHECK(own.microbatch == 0);
  CHECK(own.step == 0);
  CHECK(own.what == "rank 1 issued 1SEND_B0 (send to rank 0) before 1RECV_F0");
  CHECK(own.is_cycle);
}

TEST_CASE("Hang: a rank skipped a receive or a send", "[loop][hang]") {
  const HangDiagnosis receive =
      diagnose_hang({Rank(0, 2).send(1).send(1, false).all("all_reduce", false),
                     Rank(1, 2).recv(0).all("all_reduce", false)});
  CHECK(receive.kind == HangKind::MissingReceive);
  CHECK(receive.rank == 1);
  CHECK(waits_of(receive) ==
        "rank 0 at send to rank 1 waits for rank 1, which continued without it\n");

  const HangDiagnosis send =
      diagnose_hang({Rank(0, 2).send(1).all("all_reduce", false),
                     Rank(1, 2).recv(0).recv(0, false).all("all_reduce", false)});
  CHECK(send.kind == HangKind::MissingSend);
  CHECK(send.rank == 0);
}

TEST_CASE("Hang: a rank issued a send that the schedule does not have", "[loop][hang]") {
  const HangDiagnosis own =
      diagnose_hang({Rank(0, 2).send(1).send(1).send(1, false).recv(1, false).recv(1, false),
                     Rank(1, 2).recv(0).send(0, false).recv(0).send(0, false)},
                    {plan::lower(test::make("1f1b", 2, 2))});
  CHECK(own.kind == HangKind::Extra);
  CHECK(own.rank == 0);
  CHECK(own.instruction == "0RECV_B0");
}

TEST_CASE("Hang: ring buffers with different contents are matched from the last complete operation",
          "[loop][hang]") {
  FlightRecord sender = Rank(0, 2).send(1).send(1).send(1, false).all("all_reduce", false);
  FlightRecord receiver = Rank(1, 2).recv(0).all("all_reduce", false);
  sender.is_whole = receiver.is_whole = false;
  const HangDiagnosis own = diagnose_hang({sender, receiver});
  CHECK(own.kind == HangKind::MissingReceive);
  CHECK(own.rank == 1);
}

TEST_CASE("Hang: operations of one launch have no order", "[loop][hang]") {
  // Both exchange, then rank 1 does not reach the next exchange.
  const auto exchange = [](FlightRecord record, bool completed) {
    for (std::size_t at = record.operations.size() - 2; at < record.operations.size(); ++at) {
      record.operations[at].launch = 100;
      record.operations[at].is_coalesced = true;
      record.operations[at].completed = completed;
    }
    return record;
  };
  const HangDiagnosis none = diagnose_hang(
      {exchange(Rank(0, 2).send(1).recv(1), true), exchange(Rank(1, 2).send(0).recv(0), true)});
  CHECK(none.kind == HangKind::None);
  const HangDiagnosis late =
      diagnose_hang({exchange(Rank(0, 2).send(1).recv(1), false), Rank(1, 2).all("barrier")});
  CHECK(late.kind == HangKind::Late);
  CHECK(late.rank == 1);
}

TEST_CASE("Hang: a late rank is found at the end of a chain", "[loop][hang]") {
  const HangDiagnosis own = diagnose_hang(
      {Rank(0, 3).send(1), Rank(1, 3).recv(0).recv(0, false), Rank(2, 3).recv(1, false)});
  CHECK(own.kind == HangKind::Late);
  CHECK(own.rank == 0);
  CHECK(own.operation == "behind send to rank 1");
  CHECK(!own.is_cycle);
  CHECK(waits_of(own) ==
        "rank 2 at recv from rank 1 waits for rank 1, which has not issued it and waits in recv "
        "from rank 0\n"
        "rank 1 at recv from rank 0 waits for rank 0, which has not issued it and is in no "
        "communication\n");
}

TEST_CASE("Hang: a rank without a dump is dead", "[loop][hang]") {
  const HangDiagnosis own = diagnose_hang({Rank(0, 3).recv(1, false), Rank(1, 3).recv(2, false)});
  CHECK(own.kind == HangKind::Dead);
  CHECK(own.rank == 2);
  CHECK(own.notes == std::vector<std::string>{"no dump of 1 rank: 2"});
}

TEST_CASE("Hang: a rank has open what its peers have gone past", "[loop][hang]") {
  const HangDiagnosis own =
      diagnose_hang({Rank(0, 3).only_active(104).all("all_to_all", false).all("all_to_all", false),
                     Rank(1, 3).only_active(101).all("all_to_all", false).all("all_to_all", false),
                     Rank(2, 3).only_active(104).all("all_to_all", false)});
  CHECK(own.kind == HangKind::Late);
  CHECK(own.rank == 1);
  CHECK(own.ranks == std::vector{1});
  CHECK(own.what ==
        "rank 1 has issued all_to_all 101 of group 0 (default_pg), and ranks 0, 2 have gone past "
        "it: its device makes no progress");
  CHECK(own.operation == "all_to_all 101 of group 0 (default_pg)");

  // All dumps are whole, and the rank is in an earlier receive, too: the others cannot have reduced
  // without it.
  const HangDiagnosis whole =
      diagnose_hang({Rank(0, 3).send(1).all("all_reduce").all("all_reduce", false),
                     Rank(1, 3).recv(0, false).all("all_reduce", false),
                     Rank(2, 3).all("all_reduce").all("all_reduce", false)});
  CHECK(whole.kind == HangKind::Late);
  CHECK(whole.ranks == std::vector{1});

  // The others list nothing of the group: its status says that they are past it.
  FlightRecord waiting = Rank(0, 2).only_active(50).all("all_reduce", false);
  waiting.groups.push_back({"1", "EP", {0, 1}, 103});
  FlightRecord stuck = Rank(1, 2).only_active(101).all("all_to_all", false);
  stuck.groups.push_back({"1", "EP", {0, 1}, 100});
  stuck.operations.back().group = 1;
  const HangDiagnosis elsewhere = diagnose_hang({waiting, stuck});
  CHECK(elsewhere.kind == HangKind::Late);
  CHECK(elsewhere.ranks == std::vector{1});

  // The root of a broadcast waits for no rank, so the operation before it holds the rank up.
  const HangDiagnosis root =
      diagnose_hang({Rank(0, 3).all("broadcast"), Rank(1, 3).recv(2, false).all("broadcast", false),
                     Rank(2, 3).all("broadcast")});
  CHECK(root.ranks == std::vector{2});
}

TEST_CASE("Hang: every rank at fault is named", "[loop][hang]") {
  const HangDiagnosis behind = diagnose_hang({Rank(0, 4).only_active(9).all("all_reduce", false),
                                              Rank(1, 4).only_active(7).all("all_reduce", false),
                                              Rank(2, 4).only_active(9).all("all_reduce", false),
                                              Rank(3, 4).only_active(8).all("all_reduce", false)});
  CHECK(behind.ranks == std::vector{1, 3});
  CHECK(behind.what.find("; rank 3 has issued all_reduce 8") != std::string::npos);
  CHECK(to_json(behind)["ranks"] == plan::Json{1, 3});
  CHECK(in_words(behind).find("ranks       1, 3\n") != std::string::npos);

  const HangDiagnosis late =
      diagnose_hang({Rank(0, 4).all("all_reduce", false), Rank(1, 4),
                     Rank(2, 4).all("all_reduce", false), Rank(3, 4).only_active(1)});
  CHECK(late.kind == HangKind::Late);
  CHECK(late.ranks == std::vector{1, 3});
}

TEST_CASE("Hang: a rank without a dump is not blamed while another rank explains the hang",
          "[loop][hang]") {
  const HangDiagnosis behind =
      diagnose_hang({Rank(0, 4).only_active(104).all("all_to_all", false),
                     Rank(1, 4).only_active(101).all("all_to_all", false),
                     Rank(3, 4).only_active(104).all("all_to_all", false)});
  CHECK(behind.ranks == std::vector{1});
  CHECK(behind.notes ==
        std::vector<std::string>{"no dump of 1 rank: 2",
                                 "others wait for rank 2 too, whose dump is missing"});
  const HangDiagnosis late =
      diagnose_hang({Rank(0, 3).all("all_reduce", false), Rank(1, 3).all("barrier")});
  CHECK(late.ranks == std::vector{2});
  const HangDiagnosis idle = diagnose_hang({Rank(0, 3).all("all_reduce", false), Rank(1, 3)});
  CHECK(idle.kind == HangKind::Late);
  CHECK(idle.ranks == std::vector{1});
}

TEST_CASE("Hang: open operations are never reported as complete", "[loop][hang]") {
  // A group of one rank.
  const HangDiagnosis alone = diagnose_hang({Rank(0, 1).all("all_reduce", false)});
  CHECK(alone.kind == HangKind::Late);
  CHECK(alone.ranks == std::vector{0});
  // The sender has completed what the receiver has not.
  const HangDiagnosis receiver = diagnose_hang({Rank(0, 2).send(1), Rank(1, 2).recv(0, false)});
  CHECK(receiver.kind == HangKind::Late);
  CHECK(receiver.rank == 1);
}

TEST_CASE("Hang: a rank is in a different collective, or has other sizes or types",
          "[loop][hang]") {
  const HangDiagnosis other =
      diagnose_hang({Rank(0, 3).all("all_reduce", false), Rank(1, 3).all("broadcast", false),
                     Rank(2, 3).all("all_reduce", false)});
  CHECK(other.kind == HangKind::Collective);
  CHECK(other.rank == 1);
  CHECK(other.what ==
        "rank 1 is at broadcast 1 of group 0 (default_pg), rank 0 at all_reduce 1 of group 0 "
        "(default_pg)");

  // The rank of the two that behaved differently before is at fault.
  const HangDiagnosis sizes =
      diagnose_hang({Rank(0, 2).send(1).send(1, false, 8), Rank(1, 2).recv(0).recv(0, false)});
  CHECK(sizes.kind == HangKind::Sizes);
  CHECK(sizes.rank == 0);
  CHECK(sizes.what ==
        "rank 0 is at send to rank 1 of Float [8], rank 1 at recv from rank 0 of "
        "Float [4]");

  const HangDiagnosis types =
      diagnose_hang({Rank(0, 3).all("all_reduce", false), Rank(1, 3).all("all_reduce", false),
                     Rank(2, 3).all("all_reduce", false, "BFloat16")});
  CHECK(types.kind == HangKind::Types);
  CHECK(types.rank == 2);
}

TEST_CASE("Hang: there is none if all operations are complete", "[loop][hang]") {
  const HangDiagnosis own =
      diagnose_hang({Rank(0, 2).send(1).all("all_reduce"), Rank(1, 2).recv(0).all("all_reduce")});
  CHECK(own.kind == HangKind::None);
  CHECK(to_json(own)["rank"].is_null());
}

TEST_CASE("Hang: a schedule with other ranks is rejected, one with another order is ignored",
          "[loop][hang]") {
  const std::vector<FlightRecord> records{Rank(0, 2).recv(1, false), Rank(1, 2).recv(0, false)};
  CHECK(error_of([&] { diagnose_hang(records, {plan::lower(test::make("1f1b", 4, 4))}); }) ==
        "the schedule has 4 ranks, but the job has 2 and no sends or receives in a group of 4");
  const HangDiagnosis own =
      diagnose_hang({Rank(0, 2).recv(1).recv(1).send(1), Rank(1, 2).send(0).send(0).recv(0, false)},
                    {plan::lower(test::make("1f1b", 2, 4))});
  REQUIRE(own.notes.size() == 1);
  CHECK(own.notes[0].find("2 of 2 ranks send and receive in another order") == 0);
}

}  // namespace pipewright::trace::hang_diagnosis_test
