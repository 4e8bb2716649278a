#pragma once

// Arranges a foreign trace for display: one row per thread instead of one per process.

#include "pipewright/plan/timeline/event_table.hpp"

namespace pipewright::trace {

/// Returns a table whose ranks are rows: first the pipeline of each rank that has actions, then
/// each thread, named after its process and itself ("trainer, stream 7"). A table that is an
/// iteration of a pipeline (`plan::facts_of`) already has ranks as rows and is returned unchanged.
plan::EventTable with_thread_rows(plan::EventTable table);

}  // namespace pipewright::trace
