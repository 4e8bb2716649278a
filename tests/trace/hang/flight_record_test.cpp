// Checks dumps of FlightRecorder: torch's own (tests/data/flight_recorder), and invalid ones.

#include "pipewright/trace/hang/flight_record.hpp"

#include <algorithm>

#include "pipewright/plan/error.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"
#include "trace/support/pickle_bytes.hpp"

namespace pipewright::trace::flight_record_test {

using test::error_of;
using Kind = FlightOperation::Kind;

const std::string dumps = PIPEWRIGHT_TEST_DATA_DIR "/flight_recorder/";

TEST_CASE("A dump written by torch has groups and operations", "[loop][hang]") {
  const auto records = read_flight_records({dumps + "gloo"});
  REQUIRE(records.size() == 2);
  CHECK(records[0].rank == 0);
  CHECK(records[1].rank == 1);
  CHECK(records[0].is_whole);
  REQUIRE(records[0].groups.size() == 1);
  CHECK(records[0].groups[0].ranks == std::vector{0, 1});
  std::vector<std::string> names;
  for (const FlightOperation& own : records[0].operations)
    names.push_back(own.name + (own.completed ? "" : "!"));
  CHECK(names == std::vector<std::string>{"all_reduce", "all_reduce!"});
  CHECK(records[1].operations.back().name == "broadcast");
  CHECK(records[0].operations[0].inputs == FlightTensors{"[4]", "Float", 4});
  CHECK(records[0].operations[0].sequence == 1);
  CHECK(records[0].operations[0].place == "hang.py:25 train");
}

TEST_CASE("A dump written by Python's pickle is read like one in JSON", "[loop][hang]") {
  const auto pickled = read_flight_records({dumps + "nccl_trace_rank_1"}).front();
  const auto json = read_flight_records({dumps + "json/rank1.json"}).front();
  for (const FlightRecord& own : {pickled, json}) {
    CHECK(own.rank == 1);
    CHECK(!own.is_whole);
    REQUIRE(own.groups.size() == 2);
    CHECK(own.groups[1] == FlightGroup{"pp", "pipeline", {1, 3}});
    REQUIRE(own.operations.size() == 4);
    const FlightOperation& send = own.operations[0];
    CHECK(send.kind == Kind::Send);
    CHECK(send.peer == 3);  // rank 1 of its group
    CHECK(send.completed);
    CHECK(send.inputs == FlightTensors{"[2, 3]", "BFloat16", 6});
    // The state of a launch is only in its last entry.
    CHECK(own.operations[1].launch == own.operations[2].launch);
    CHECK(own.operations[1].is_coalesced);
    CHECK(own.operations[1].started);
    CHECK(own.operations[2].kind == Kind::Receive);
    CHECK(own.operations[3].name == "all_reduce");
    CHECK(own.operations[3].sequence == 70'000);
    CHECK(!own.operations[3].started);
  }
}

std::string refused(const std::string& bytes, int rank = 0) {
  return error_of([&] { parse_flight_record(bytes, "rank0", rank); });
}

TEST_CASE("An invalid dump is rejected with file and field of all errors", "[loop][hang]") {
  CHECK(refused("") == "rank0: is empty");
  CHECK(refused("PK\x03\x04") ==
        "rank0: is not a dump of torch's FlightRecorder: it begins as neither a pickle nor JSON");
  CHECK(refused(test::pickle_file(test::pickle_list({}))) ==
        "rank0: is not a dump of torch's FlightRecorder: a dictionary with pg_config and entries");
  CHECK(refused("\x80\x02"
                "cos\nsystem\n.") ==
        "rank0: byte 2: the name 'os system' is not one that such a file needs; nothing is run");
  CHECK(refused(R"({"pg_config": {"0": {"ranks": "[0, x]"}}, "entries": [3,
    {"profiling_name": "nccl:send 0->7", "state": "lost", "process_group": ["0", ""],
     "p2p_seq_id": 1}]})") ==
        "rank0: /pg_config/0/ranks: \"[0, x]\" is not a list of ranks, such as \"[0, 1]\"\n"
        "rank0: /entries/0: must be a dictionary\n"
        "rank0: /entries/1/profiling_name: \"0->7\" are not two ranks of a group of 0\n"
        "rank0: /entries/1/state: \"lost\" is not scheduled, started or completed");
}

TEST_CASE("A dump with gaps has only active operations", "[loop][hang]") {
  const auto dump_with = [](const std::vector<int>& ids) {
    std::string entries;
    for (const int id : ids)
      entries += (entries.empty() ? "" : ", ") +
                 (R"({"profiling_name": "nccl:all_reduce",
        "state": "scheduled", "process_group": ["0", ""], "is_p2p": false, "record_id": )" +
                  std::to_string(id) + R"(, "collective_seq_id": )" + std::to_string(id) + "}");
    return parse_flight_record(
        R"({"pg_config": {"0": {"ranks": "[0, 1]"}}, "entries": [)" + entries + "]}", "rank0", 0);
  };
  CHECK(dump_with({0, 1, 2}).is_whole);
  CHECK(!dump_with({0, 2, 3}).is_whole);
  CHECK(!dump_with({4, 5}).is_whole);
}

TEST_CASE("A group's last complete collective is read from the status", "[loop][hang]") {
  // The process numbers its groups 0 and 5; their names count all groups of the job.
  const auto last_of = [](const std::string& pg_id) {
    const FlightRecord record = parse_flight_record(
        R"({"pg_config": {"0": {"ranks": "[0, 1]"}, "41": {"ranks": "[0, 1]"}},
        "pg_status": {"5": {"last_completed_collective": 103},
                      "0": {"last_completed_collective": 7}},
        "entries": [{"profiling_name": "nccl:all_reduce", "state": "scheduled",
          "process_group": ["41", ""], "is_p2p": false, "record_id": 9, "collective_seq_id": 104,
          "pg_id": )" +
            pg_id + "}]}",
        "rank0", 0);
    return std::pair(record.groups.at(0).last_completed, record.groups.at(1).last_completed);
  };
  CHECK(last_of("5") == std::pair<std::int64_t, std::int64_t>(7, 103));
  CHECK(last_of("0") == std::pair<std::int64_t, std::int64_t>(-1, -1));  // they disagree
}

TEST_CASE("A dump belongs to the rank at the end of its name", "[loop][hang]") {
  const std::string dump = R"({"pg_config": {"0": {"ranks": "[0, 1]"}}, "entries": [
    {"profiling_name": "nccl:send 0->1", "state": "scheduled", "process_group": ["0", ""],
     "p2p_seq_id": 1}]})";
  CHECK(refused(dump) == "no error");
  CHECK(refused(dump, 1) ==
        "rank0: /entries/0/profiling_name: is of rank 0, but the file's name ends in 1: a dump is "
        "named after its rank, such as nccl_trace_rank_0");

  const test::TempFolder folder;
  const auto nameless = folder.write("trace.json", dump);
  const auto first = folder.write("a0.json", dump), second = folder.write("b0", dump);
  CHECK(error_of([&] {
          read_flight_records({nameless, first, second, folder.path() / "c1"});
        }) == nameless.string() +
                  ": the name does not end in a rank, as in nccl_trace_rank_3 or rank3.json\n" +
                  second.string() + ": is of rank 0, as " + first.string() + " is\n" +
                  (folder.path() / "c1").string() + ": cannot be read");
  const test::TempFolder empty;
  CHECK(error_of([&] { read_flight_records({empty.path()}); }).find("no dump of FlightRecorder") !=
        std::string::npos);
}

}  // namespace pipewright::trace::flight_record_test
