#pragma once

// A plan in the words of other trainers, and the way back: Megatron-LM's arguments, the TOML of
// torchtitan 0.2, the JSON of DeepSpeed's pipeline engine. What is written is read as the same
// plan; what a trainer cannot do is named, never left out.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::models {

enum class Trainer { Megatron, Torchtitan, DeepSpeed };

const std::vector<std::string>& trainers();  // megatron, torchtitan, deepspeed
std::string to_string(Trainer trainer);
/// Throws InputError where it is none of these words.
Trainer trainer_of(const std::string& word);
/// What its file is called beside a plan: megatron.txt, torchtitan.toml, deepspeed.json.
std::string file_name(Trainer trainer);

// The scenario's partition has to be the borders of its stages, for they are told. Throws
// InputError where it says what they shall balance.

/// What the trainer cannot be told or does not do, a line for each field: "training.zero=2: …".
std::vector<std::string> untold(Trainer trainer, const plan::Scenario& scenario);

/// The file's text. Throws Infeasible with all of `untold`.
std::string trainer_file(Trainer trainer, const plan::Scenario& scenario);
/// Nothing where the trainer cannot be told all of it.
std::optional<std::string> find_trainer_file(Trainer trainer, const plan::Scenario& scenario);

/// What such a text says of a plan, as assignments to fields of a scenario: "pipeline.ranks=4".
/// What it leaves open keeps its value; `replicas`: where it leaves open how many pipelines share
/// its batch. Fields of theirs that no plan follows from are not looked at. Throws InputError that
/// names file, place and field of all faults at once.
std::vector<std::string> assignments_of(Trainer trainer, std::string_view text,
                                        const std::string& name, int replicas = 1);
/// Of a file; whose it is, its text tells: JSON, sections in brackets, or arguments.
std::vector<std::string> read_assignments(const std::filesystem::path& file, int replicas = 1);

/// The class of torch.distributed.pipelining that has this order of ours: "Interleaved1F1B"; empty
/// where torch has none.
std::string torch_schedule(const std::string& schedule);

}  // namespace pipewright::models
