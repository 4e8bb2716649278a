#pragma once

// Why a job of torch stands still: the first rank that diverged, and who waits for whom until
// there.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/program/program.hpp"
#include "pipewright/trace/hang/flight_record.hpp"

namespace pipewright::trace {

enum class HangKind {
  None,            // every operation of every rank is complete
  Order,           // sends and receives in another order: ranks wait for each other
  MissingSend,     // a rank went on without it
  MissingReceive,  // a rank went on without it
  Extra,           // a send or receive that the schedule does not have
  Late,            // a rank that others wait for, and that is in no communication itself
  Dead,            // a rank of which there is no dump
  Collective,      // a rank in another collective than its group
  Sizes,           // the ends of a transfer, or ranks of a collective, have other sizes
  Types,           // … other types
};
const std::vector<std::string>& hang_kinds();  // "none", "order", "missing send", …
const std::string& to_string(HangKind kind);

/// A rank that waits, for an operation that another has not got to.
struct HangWait {
  int rank = 0;
  std::string at;  // the operation in words
  int waits_for = 0;
  std::string because;  // what of the other rank
};

struct HangDiagnosis {
  HangKind kind = HangKind::None;
  int rank = -1;            // the first that diverged; of ranks that wait for each other, without a
                            // schedule, the lowest
  std::string what;         // a sentence
  std::string operation;    // at which it diverged, "recv from rank 1"; may be empty
  std::string instruction;  // of the schedule, "2RECV_F3"; empty: no schedule was given
  int stage = -1, microbatch = -1;
  int step = -1;      // counted from the first that the dumps have; -1: a ring has lost the first
  std::string place;  // in the program, where the dump has frames
  std::vector<HangWait> waits;
  bool is_cycle = false;  // the last of `waits` waits for the first; else for the rank at fault
  std::vector<std::string> notes;
};

/// `records` by rank, as `read_flight_records` gives them. `schedules`: how the job's schedule may
/// have been lowered; that which its orders of sends and receives follow furthest is taken. Throws
/// InputError where its ranks are not those of the job.
HangDiagnosis diagnose_hang(const std::vector<FlightRecord>& records,
                            const std::vector<plan::Program>& schedules = {});

plan::Json to_json(const HangDiagnosis& diagnosis);
std::string in_words(const HangDiagnosis& diagnosis);

}  // namespace pipewright::trace
