#pragma once

// Tables of Megatron-LM's runs, in columns as papers/megatron_golden_visible.csv of the reference
// data has them: each row becomes a run to account for, or says why nobody can.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/megatron/megatron_run.hpp"

namespace pipewright::plan {

struct MegatronRow {
  std::string id;
  int line = 0;                              // of the table
  std::map<std::string, std::string> cells;  // by column
  std::optional<MegatronRun> run{};
  std::string refused{};  // why there is none: the column, its value and what would do
};

/// Whether a header is that of such a table: it tells whose memory was read.
bool is_megatron_table(std::string_view csv);

/// Throws InputError where the file is no table; a row that cannot be a run is refused by itself.
/// What was measured is not looked at.
std::vector<MegatronRow> read_megatron_table(std::string_view csv, const std::string& name);

/// The run of a row's cells. Throws InputError: what the row says that is not accounted for.
MegatronRun megatron_run_of(const std::map<std::string, std::string>& cells);

}  // namespace pipewright::plan
