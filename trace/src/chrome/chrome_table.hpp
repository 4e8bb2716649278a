#pragma once

// From the records of Chrome traces to an EventTable.

#include "chrome/chrome_records.hpp"

namespace pipewright::trace {

/// Ranks, their tracks and what is on them. Of no events: a table without ranks.
plan::EventTable table_of(ChromeRecords& records);

}  // namespace pipewright::trace
