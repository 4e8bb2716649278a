#pragma once

// The commands that do not need LibTorch.

#include "options/command_line/command.hpp"

namespace pipewright::cli {

Command partition_command();
Command schedule_command();
Command topology_command();
Command sweep_command();
Command compare_command();
Command convert_command();
Command export_command();
Command import_command();
Command explain_command();
Command calibrate_command();
Command plan_command();
Command model_command();

}  // namespace pipewright::cli
