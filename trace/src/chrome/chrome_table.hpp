#pragma once

// Converts the records of Chrome traces into an EventTable.

#include "chrome/chrome_records.hpp"

namespace pipewright::trace {

/// Returns the table of ranks, their tracks and events. Without events the table has no ranks.
plan::EventTable table_of(ChromeRecords& records);

}  // namespace pipewright::trace
