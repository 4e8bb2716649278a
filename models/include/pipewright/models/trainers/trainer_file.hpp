#pragma once

// Export of plans to other trainers and import from them: Megatron-LM's arguments, torchtitan 0.3's
// Python and 0.2's TOML, and the JSON of DeepSpeed's pipeline engine. An exported file imports as
// the same plan. Features that a trainer lacks are reported, never dropped.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/models/trainers/cut_context.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::models {

enum class Trainer { Megatron, Torchtitan, TorchtitanToml, DeepSpeed };

const std::vector<std::string>& trainers();  // megatron, torchtitan, torchtitan-0.2, deepspeed
std::string to_string(Trainer trainer);
/// Throws InputError if the word names no trainer.
Trainer trainer_of(const std::string& word);
/// Returns the trainer's file name within a plan, such as torchtitan_plan.py.
std::string file_name(Trainer trainer);

// The scenario's partition must consist of explicit stage boundaries, because the files contain
// them. The functions throw InputError for a partition method.

/// Returns the features that the trainer does not support, one line per field: "training.zero=2:
/// …".
std::vector<std::string> unsupported_fields(Trainer trainer, const plan::Scenario& scenario);

/// Returns the text of the file. Throws Infeasible with all lines of `unsupported_fields`.
std::string trainer_file(Trainer trainer, const plan::Scenario& scenario);
/// Returns the text of the file, or nothing if the trainer does not support a feature.
std::optional<std::string> find_trainer_file(Trainer trainer, const plan::Scenario& scenario);

/// Reads a plan from such a text, as assignments to fields of a scenario: "pipeline.ranks=4".
/// Fields that it does not set keep their values. Fields of the trainer that affect neither the
/// plan nor the time and memory of a step are ignored. Throws InputError that lists file, position
/// and field of all faults, and of all fields whose effect is not predicted.
std::vector<std::string> assignments_of(Trainer trainer, std::string_view text,
                                        const std::string& name, const CutContext& context = {});
/// Reads a file, and detects the trainer from its text: JSON, Python, sections in brackets, or
/// arguments. "file.py:function" names a function of a Python file.
std::vector<std::string> read_assignments(const std::filesystem::path& file, CutContext context);

/// Returns the class of torch.distributed.pipelining with the same order as our schedule, such as
/// "Interleaved1F1B"; empty if torch has none.
std::string torch_schedule(const std::string& schedule);

}  // namespace pipewright::models
