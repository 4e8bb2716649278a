#pragma once

// Field lists of a scenario's structs, one line per field. Reading, writing and the JSON Schema use
// them.

#include <string>
#include <vector>

#include "cluster/cluster_fields.hpp"
#include "pipewright/plan/generators/schedule_catalogue.hpp"
#include "pipewright/plan/json/fields.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::plan {

inline constexpr Range zero_range{.least = 0, .most = 3};

/// Returns the kinds of data and the models that learn from each: "text: the bytes of one file, for
/// gpt; cifar10: …".
const std::string& data_kind_meaning();
/// Returns the meaning of the path for each kind of data.
const std::string& data_path_meaning();
const std::vector<std::string>& data_kind_names();

/// Returns the schema of a schedule: a name from the catalogue, or the name of a file.
const std::string& schedule_schema();
/// Each returns the meaning of the field, and the schedules that have it.
const std::string& group_meaning();
const std::string& memory_units_meaning();
const std::string& placement_meaning();

template <MaybeConst<DataSource> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("kind", s.kind, needed(one_of(data_kind_names())), data_kind_meaning().c_str());
  visit("path", s.path, needed(FieldRule{.schema = R"({"type": "string", "minLength": 1})"}),
        data_path_meaning().c_str());
  visit("evaluation", s.evaluation, FieldRule{.schema = R"({"type": "string"})"},
        "The same of data that are not trained on, for training.evaluate_every.");
  visit("order", s.order, one_of(sample_orders()),
        "How samples are taken. anywhere: windows that begin anywhere, drawn from the seed; "
        "shuffled: windows one behind the other, each once in an epoch, in an order drawn from "
        "seed and epoch; packed: the same of samples that are filled with whole documents, whose "
        "tokens do not see each other's.");
  visit("document_end", s.document_end, within(at_least(-1)),
        "For packed: the token behind each document; -1: the file's .idx says where they end.");
  visit("read_ahead", s.read_ahead, within(at_least(0)),
        "Microbatches that a rank reads before it comes to them, beside its compute; 0: each is "
        "read when it is reached.");
}

template <MaybeConst<Pipeline> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("ranks", s.ranks, needed(within(at_least(1))),
        "Each has a stage or several; no more than the model has layers.");
  visit("microbatches", s.microbatches, needed(within(at_least(1))), "In one step.");
  visit("schedule", s.schedule.name, needed(FieldRule{.schema = schedule_schema().c_str()}),
        "In which order a rank does its work: the name of a schedule; or a file that has it, "
        "relative to the folder of this one: torch's CSV, compute alone or with communication, or "
        "a Program, such as program.json of a run. A file is taken as it is.");
  visit("chunks", s.chunks, within(at_least(0)),
        "Stages per rank; 0 or absent: as few as the schedule can have.");
  visit("group", s.group, within(at_least(0)), group_meaning().c_str());
  visit("memory_units", s.memory_units, within(at_least(0)), memory_units_meaning().c_str());
  visit("placement", s.placement,
        FieldRule{.range = at_least(0),
                  .schema = R"({"type": "array", "items": {"type": "integer", "minimum": 0}})"},
        placement_meaning().c_str());
  visit(
      "partition", s.partition, FieldRule{.schema = R"({"oneOf": [
                    {"type": "string", "enum": ["profile", "parameters", "uniform"]},
                    {"type": "string", "pattern": "^type:"},
                    {"type": "array", "items": {"type": "integer", "minimum": 0},
                     "minItems": 2}]})"},
      "What the stage boundaries balance: measured time, parameter counts, the number of layers, "
      "or that of the layers whose kind matches a regular expression (type:REGEX). Or the "
      "boundaries themselves, as `pipewright partition` prints them: [0, 2, 5] are two stages, of "
      "layers 0 and 1 and of layers 2 to 4.");
  visit("communicators", s.communicators, one_of(communicator_layouts()),
        "Which transfers share one in-order queue: those of a directed pair of ranks, of a pair, "
        "or all of a rank.");
  visit("transfers", s.transfers, one_of(transfer_modes()),
        "When a transfer may start: once both ends have reached it, or once the sender has.");
  visit("blocking", s.blocking, any(), "Whether a rank computes nothing during its transfers.");
  visit("replicas", s.replicas, within(at_least(1)),
        "Pipelines side by side, which sum their gradients.");
  visit("tensor", s.tensor, within(size_range),
        "Ranks that share out the heads, widths and vocabulary of each stage.");
  visit("sequence_parallel", s.sequence_parallel, any(),
        "Whether those ranks share out the tokens between the parts that they cut so.");
  visit("context", s.context, within(size_range), "Ranks that share out each sequence.");
  visit("expert", s.expert, within(size_range),
        "Ranks that share out the experts of a mixture; it divides replicas times context.");
  visit("axes", s.axes, FieldRule{.schema = R"({"type": "array", "minItems": 4,
                    "items": {"type": "string", "enum": ["pipe", "data", "context", "tensor"]}})"},
        "How the job's ranks are counted: the last axis is the fastest, so its ranks are "
        "neighbours.");
  visit("overlap_reductions", s.overlap_reductions, any(),
        "Whether gradients are reduced beside the backward; if not, behind all compute of the "
        "rank.");
  visit("hand_over", s.hand_over, one_of(hand_overs()),
        "How a tensor reaches the next rank. reference: in one process the neighbour reads its "
        "maker's memory; copy: between processes and GPUs the receiver has a buffer of its own.");
}

template <MaybeConst<Training> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("steps", s.steps, needed(within(at_least(1))), "Optimizer steps.");
  visit("microbatch_size", s.microbatch_size, needed(within(at_least(1))),
        "Samples of one microbatch.");
  visit("learning_rate", s.learning_rate, within(more_than(0)), "Of the optimizer.");
  visit("warm_up_steps", s.warm_up_steps, within(at_least(0)),
        "Steps over which the learning rate rises linearly.");
  visit("decay", s.decay, one_of(decays()),
        "What the learning rate does after its warm-up: nothing, or falls to 0 by the last step, "
        "linearly or as a cosine.");
  visit("weight_decay", s.weight_decay, within(at_least(0)), "Of the optimizer.");
  visit("decayed", s.decayed, one_of(decayed_parameters()),
        "Which parameters weight decay makes smaller: all; or matrices, which leaves out norms and "
        "biases.");
  visit("clip_norm", s.clip_norm, within(at_least(0)),
        "The largest global norm of the gradients; 0: any.");
  visit("gradient_groups", s.gradient_groups, within(at_least(0)),
        "The batch's microbatches are added up in so many equal groups, and then the groups: "
        "results do not depend on the number of pipelines among which whole groups are divided. "
        "0: one group for each pipeline.");
  visit("tensor_groups", s.tensor_groups, within({.least = 0, .most = size_range.most}),
        "A product over a width that shards share out is added up in so many equal parts: results "
        "do not depend on the number of shards among which whole parts are divided. 0: one part "
        "for each shard.");
  visit("seed", s.seed, within(at_least(0)), "Of the initial weights and of the order of samples.");
  visit("optimizer", s.optimizer, one_of(optimizers()),
        "AdamW keeps two states for each parameter, SGD with momentum one, SGD none.");
  visit("precision", s.precision, one_of(precisions()),
        "full: all in the type that was measured; mixed: parameters and gradients in 2 bytes "
        "(bfloat16), a master copy and the optimizer's states in fp32; mixed-fp16: the same in "
        "float16.");
  visit("fp32_gradients", s.fp32_gradients, any(),
        "Whether gradients are added up in fp32 under mixed precision. Predictions take it that "
        "replicas send them in the parameters' type; training sends them so under ZeRO 2 and 3, "
        "and in fp32 else.");
  visit("loss_scale", s.loss_scale, within(at_least(0)),
        "By which the loss is multiplied, so that small gradients survive 16 bits; a step whose "
        "gradients are not finite is skipped. 0: under mixed-fp16 65536, halved after such a step "
        "and doubled after 2000 good ones; else 1.");
  visit("evaluate_every", s.evaluate_every, within(at_least(0)),
        "Steps after which the loss of a batch of data.evaluation is worked out; 0: never.");
  visit("zero", s.zero, within(zero_range),
        "What is divided among the replicas. 1: the optimizer's state, master copy included; 2: "
        "gradients as well; 3: parameters as well.");
  visit("recompute", s.recompute, one_of(recompute_modes()),
        "What a layer's backward computes again: nothing, its forward, or only its attention "
        "core.");
  visit("microbatch_lengths", s.microbatch_lengths, within(more_than(0)),
        "By microbatch: factors of its times and of what it keeps and sends; empty: all 1. For "
        "prediction.");
  visit("jitter", s.jitter, within(at_least(0)),
        "Standard deviation of every duration over its mean, drawn from the seed. For "
        "prediction.");
  visit("cpu_branch", s.cpu_branch, one_of(cpu_branches()),
        "With which instructions CPUs compute. best: what suits each; machines that shall give the "
        "same bits need one of the others: avx2 or avx512 on Intel's CPUs, compatible on all.");
  visit(
      "cuda_graphs", s.cuda_graphs, any(),
      "Whether a stage's work for a microbatch is captured as CUDA graphs and launched as a whole: "
      "for small models, whose kernels are over before the next is launched. Costs memory.");
}

template <MaybeConst<ProfileSettings> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("warm_up", s.warm_up, within(at_least(0)), "Repeats that are not counted.");
  visit("least_repeats", s.least_repeats, within(at_least(1)), "No more than most_repeats.");
  visit("most_repeats", s.most_repeats, within(at_least(1)), "Then it stops, whatever the spread.");
  visit("spread", s.spread, within(more_than(0)), "Interquartile range over median.");
}

}  // namespace pipewright::plan
