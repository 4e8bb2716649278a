#pragma once

// Diagnoses a hung torch job: the first rank that diverged, and the chain of waits that leads to
// it.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/program/program.hpp"
#include "pipewright/trace/hang/flight_record.hpp"

namespace pipewright::trace {

enum class HangKind {
  None,            // every operation of every rank is complete
  Unknown,         // operations are open, and the dumps do not show why
  Order,           // sends and receives in different orders: ranks wait for each other
  MissingSend,     // a rank skipped a send and continued
  MissingReceive,  // a rank skipped a receive and continued
  Extra,           // a send or receive that the schedule does not have
  Late,        // a rank that others wait for is in no communication itself, or makes no progress
  Dead,        // a rank has no dump
  Collective,  // a rank is in a different collective than its group
  Sizes,       // the ends of a transfer, or the ranks of a collective, have different sizes
  Types,       // … different types
};
const std::vector<std::string>& hang_kinds();  // "none", "unknown", "order", "missing send", …
const std::string& to_string(HangKind kind);

/// A rank that waits for an operation that another rank has not reached.
struct HangWait {
  int rank = 0;
  std::string at;  // the operation as text
  int waits_for = 0;
  std::string because;  // the state of the other rank, as text
};

struct HangDiagnosis {
  HangKind kind = HangKind::None;
  int rank = -1;            // the first rank that diverged; for a cycle of waits without a
                            // schedule, the lowest
  std::vector<int> ranks;   // all ranks at fault, `rank` first; of a cycle, its ranks
  std::string what;         // a sentence
  std::string operation;    // operation at which it diverged, "recv from rank 1"; may be empty
  std::string instruction;  // instruction in the schedule, "2RECV_F3"; empty: no schedule was given
  int stage = -1, microbatch = -1;
  int step = -1;      // counted from the first step in the dumps; -1: the ring buffer has dropped
                      // the first
  std::string place;  // source line of the program, if the dump has frames
  std::vector<HangWait> waits;
  bool is_cycle = false;  // the last of `waits` waits for the first; otherwise for the rank at
                          // fault
  std::vector<std::string> notes;
};

/// Finds the rank at fault. `records` are sorted by rank, as `read_flight_records` returns them.
/// `schedules` are possible lowerings of the job's schedule; the one whose sends and receives the
/// ranks follow furthest is used. Throws InputError if its ranks are not those of the job.
HangDiagnosis diagnose_hang(const std::vector<FlightRecord>& records,
                            const std::vector<plan::Program>& schedules = {});

plan::Json to_json(const HangDiagnosis& diagnosis);
std::string in_words(const HangDiagnosis& diagnosis);

}  // namespace pipewright::trace
