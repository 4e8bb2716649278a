// Dumps of torch's FlightRecorder, separated by lines of ====: accepted dumps are diagnosed, and
// the diagnosis names ranks of the job.

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/trace/hang/diagnosis.hpp"
#include "promise.hpp"
#include "reader.hpp"

namespace flight_record_fuzz {

using namespace pipewright;
using pipewright::fuzz::accepted;
using pipewright::fuzz::demand;

/// Returns the dumps that can be read; one of several suffices.
std::vector<trace::FlightRecord> records_in(std::string_view text) {
  constexpr std::string_view border = "\n====\n";
  std::vector<trace::FlightRecord> records;
  for (int rank = 0; rank < 8; ++rank) {
    const auto end = text.find(border);
    if (auto record = accepted([&] {
          return trace::parse_flight_record(text.substr(0, end), "rank" + std::to_string(rank),
                                            rank);
        }))
      records.push_back(std::move(*record));
    if (end == std::string_view::npos)
      break;
    text.remove_prefix(end + border.size());
  }
  return records;
}

void try_text(std::string_view text) {
  const auto records = records_in(text);
  std::set<int> ranks;
  for (const trace::FlightRecord& record : records) {
    ranks.insert(record.rank);
    for (const trace::FlightGroup& group : record.groups)
      ranks.insert(group.ranks.begin(), group.ranks.end());
    for (const trace::FlightOperation& own : record.operations) {
      demand(own.group >= 0 && own.group < static_cast<int>(record.groups.size()),
             "an operation has a group");
      demand(own.kind == trace::FlightOperation::Kind::Collective || ranks.contains(own.peer),
             "a transfer has another end");
    }
  }
  const trace::HangDiagnosis own = trace::diagnose_hang(records);
  demand(own.kind == trace::HangKind::None || ranks.contains(own.rank),
         "a rank of the job is named");
  for (const trace::HangWait& wait : own.waits)
    demand(ranks.contains(wait.rank) && ranks.contains(wait.waits_for), "ranks of the job wait");
  demand(!own.what.empty() && !in_words(own).empty(), "the diagnosis has a text");
  demand(!to_json(own).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).empty(),
         "it can be written");
}

const pipewright::fuzz::Reader reader("flight_record", try_text);

}  // namespace flight_record_fuzz
