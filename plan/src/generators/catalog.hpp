#pragma once

// The list of all schedules: one line for each function that declares a schedule at the end of its
// source file.

#include "pipewright/plan/generators/schedule_catalog.hpp"

#define PIPEWRIGHT_SCHEDULES(SCHEDULE) \
  SCHEDULE(gpipe)                      \
  SCHEDULE(one_f_one_b)                \
  SCHEDULE(interleaved_1f1b)           \
  SCHEDULE(megatron_interleaved)       \
  SCHEDULE(group_interleaved_1f1b)     \
  SCHEDULE(looped_bfs)                 \
  SCHEDULE(interleaved_zb)             \
  SCHEDULE(zb_h1)                      \
  SCHEDULE(zb_h2)                      \
  SCHEDULE(zb_auto)                    \
  SCHEDULE(one_f_one_b_v)              \
  SCHEDULE(zbv)                        \
  SCHEDULE(dualpipev)                  \
  SCHEDULE(dualpipe)                   \
  SCHEDULE(chimera)                    \
  SCHEDULE(v_half)                     \
  SCHEDULE(v_min)                      \
  SCHEDULE(v_zb)                       \
  SCHEDULE(hanayo)                     \
  SCHEDULE(pipedream)                  \
  SCHEDULE(pipedream_2bw)              \
  SCHEDULE(inference)                  \
  SCHEDULE(deepspeed_train)            \
  SCHEDULE(deepspeed_inference)        \
  SCHEDULE(data_parallel)

namespace pipewright::plan::schedule {

#define PIPEWRIGHT_DECLARE(name) ScheduleDescriptor name();
PIPEWRIGHT_SCHEDULES(PIPEWRIGHT_DECLARE)
#undef PIPEWRIGHT_DECLARE

}  // namespace pipewright::plan::schedule
