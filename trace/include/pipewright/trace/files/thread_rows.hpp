#pragma once

// A foreign trace as it is looked at: a row for each thread instead of one for each process.

#include "pipewright/plan/timeline/event_table.hpp"

namespace pipewright::trace {

/// A table whose ranks are rows: first the pipeline of each rank that has actions, then each thread
/// by its own name and its process's ("trainer, stream 7"). Of a table that is an iteration of a
/// pipeline (`plan::facts_of`) the ranks are rows already, and it stays as it is.
plan::EventTable with_thread_rows(plan::EventTable table);

}  // namespace pipewright::trace
