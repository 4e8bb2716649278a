#pragma once

// Field lists of a scenario's structs, one line per field. Reading, writing and the JSON Schema use
// them.

#include <string>
#include <vector>

#include "cluster/cluster_fields.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
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

/// Returns the schema of a schedule: a name from the catalog, or the name of a file.
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
        "Path of the data for training.evaluate_every, which are not trained on.");
  visit("order", s.order, one_of(sample_orders()),
        "Order of samples. anywhere: windows at random positions, sampled from the seed; shuffled: "
        "consecutive windows, each once per epoch, in an order sampled from seed and epoch; "
        "packed: like shuffled, but samples are filled with whole documents, whose tokens do not "
        "attend to other documents.");
  visit(
      "document_end", s.document_end, within(at_least(-1)),
      "For packed: the token after each document; -1: the file's .idx has the ends of documents.");
  visit("read_ahead", s.read_ahead, within(at_least(0)),
        "Number of microbatches that a rank reads ahead in the background; 0: each is read when it "
        "is needed.");
}

template <MaybeConst<Pipeline> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("ranks", s.ranks, needed(within(at_least(1))),
        "Number of ranks. Each has one or more stages, so there cannot be more ranks than layers.");
  visit("microbatches", s.microbatches, needed(within(at_least(1))), "Microbatches per step.");
  visit("schedule", s.schedule.name, needed(FieldRule{.schema = schedule_schema().c_str()}),
        "Order in which ranks run their actions: the name of a schedule, or of a file relative to "
        "the folder of this file. The file is torch's CSV, with compute only or with "
        "communication, or a Program, such as program.json of a run. It is used unchanged.");
  visit("chunks", s.chunks, within(at_least(0)),
        "Stages per rank; 0 or absent: the smallest number that the schedule supports.");
  visit("group", s.group, within(at_least(0)), group_meaning().c_str());
  visit("memory_units", s.memory_units, within(at_least(0)), memory_units_meaning().c_str());
  visit("placement", s.placement,
        FieldRule{.range = at_least(0),
                  .schema = R"({"type": "array", "items": {"type": "integer", "minimum": 0}})"},
        placement_meaning().c_str());
  visit("partition", s.partition, FieldRule{.schema = R"({"oneOf": [
                    {"type": "string", "enum": ["profile", "parameters", "uniform"]},
                    {"type": "string", "pattern": "^type:"},
                    {"type": "array", "items": {"type": "integer", "minimum": 0},
                     "minItems": 2}]})"},
        "Quantity that the stage boundaries balance: measured time, parameter counts, the number "
        "of layers, "
        "or the number of layers whose kind matches a regular expression (type:REGEX). Or the "
        "boundaries themselves, as `pipewright partition` prints them: [0, 2, 5] are two stages, "
        "of layers 0 and 1 and of layers 2 to 4.");
  visit("communicators", s.communicators, one_of(communicator_layouts()),
        "Which transfers share one in-order queue: those of a directed pair of ranks, of a pair, "
        "or all of a rank.");
  visit("transfers", s.transfers, one_of(transfer_modes()),
        "When a transfer may start: when both ends have reached it, or when the sender has.");
  visit("blocking", s.blocking, any(), "True if a transfer keeps its rank from computing.");
  visit("replicas", s.replicas, within(at_least(1)),
        "Number of data-parallel replicas of the pipeline, which all-reduce their gradients.");
  visit(
      "tensor", s.tensor, within(size_range),
      "Tensor-parallel size: ranks that partition the heads, widths and vocabulary of each stage.");
  visit("sequence_parallel", s.sequence_parallel, any(),
        "True if tensor-parallel ranks partition the tokens between the tensor-parallel parts of a "
        "layer.");
  visit("context", s.context, within(size_range),
        "Context-parallel size: ranks that partition each sequence.");
  visit("expert", s.expert, within(size_range),
        "Expert-parallel size: ranks that partition the experts of a mixture. It must divide "
        "replicas times context.");
  visit("axes", s.axes, FieldRule{.schema = R"({"type": "array", "minItems": 4,
                    "items": {"type": "string", "enum": ["pipe", "data", "context", "tensor"]}})"},
        "Order of the axes in the job's rank numbers. The last axis varies fastest, so its ranks "
        "are neighbors.");
  visit(
      "overlap_reductions", s.overlap_reductions, any(),
      "True if gradients are reduced during the backward, or else after all compute of the rank.");
  visit("local_transfer", s.local_transfer, one_of(local_transfers()),
        "How a tensor reaches the next rank. reference: within a process the neighbor reads the "
        "sender's memory; copy: between processes and GPUs the receiver has its own buffer.");
}

template <MaybeConst<Training> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("steps", s.steps, needed(within(at_least(1))), "Number of optimizer steps.");
  visit("microbatch_size", s.microbatch_size, needed(within(at_least(1))),
        "Samples per microbatch.");
  visit("learning_rate", s.learning_rate, within(more_than(0)), "Learning rate of the optimizer.");
  visit("warm_up_steps", s.warm_up_steps, within(at_least(0)),
        "Steps over which the learning rate rises linearly.");
  visit("decay", s.decay, one_of(decays()),
        "Learning rate after the warm-up: constant, or decaying to 0 by the last step, linearly or "
        "as a cosine.");
  visit("weight_decay", s.weight_decay, within(at_least(0)), "Weight decay of the optimizer.");
  visit("decayed", s.decayed, one_of(decayed_parameters()),
        "Parameters that weight decay applies to: all, or only matrices, which excludes norms and "
        "biases.");
  visit("clip_norm", s.clip_norm, within(at_least(0)),
        "Maximum global norm of the gradients; 0: no clipping.");
  visit("gradient_groups", s.gradient_groups, within(at_least(0)),
        "Number of gradient-accumulation groups. Fixes the summation order, so that results do not "
        "depend on the number of pipelines, each of which must have whole groups. 0: one group for "
        "each pipeline.");
  visit("tensor_groups", s.tensor_groups, within({.least = 0, .most = size_range.most}),
        "Number of partial sums of a product over a partitioned dimension. Fixes the summation "
        "order, so that results do not depend on the tensor-parallel size, by which it must be "
        "divisible. 0: one for each tensor-parallel rank.");
  visit("seed", s.seed, within(at_least(0)),
        "Seed of the initial weights and of the order of samples.");
  visit("optimizer", s.optimizer, one_of(optimizers()),
        "AdamW has two states for each parameter, SGD with momentum one, SGD none.");
  visit("precision", s.precision, one_of(precisions()),
        "full: everything in the measured type; mixed: parameters and gradients in bfloat16, with "
        "a master copy and the optimizer's states in fp32; mixed-fp16: the same with float16.");
  visit("fp32_gradients", s.fp32_gradients, any(),
        "True if gradients are accumulated in fp32 under mixed precision. Predictions assume that "
        "replicas communicate them in the type of the parameters. Training does so under ZeRO 2 "
        "and 3, and otherwise communicates them in fp32.");
  visit("loss_scale", s.loss_scale, within(at_least(0)),
        "Factor of the loss, so that small gradients do not underflow in 16 bits. A step whose "
        "gradients are not finite is skipped. 0: under mixed-fp16 65536, halved after such a step "
        "and doubled after 2000 finite ones; otherwise 1.");
  visit("evaluate_every", s.evaluate_every, within(at_least(0)),
        "Number of steps between evaluations of a batch of data.evaluation; 0: never.");
  visit("zero", s.zero, within(zero_range),
        "ZeRO stage: what is partitioned among the replicas. 1: the optimizer's state, including "
        "the master copy; 2: gradients as well; 3: parameters as well.");
  visit(
      "recompute", s.recompute, one_of(recompute_modes()),
      "Work that a layer's backward recomputes: nothing, its forward, or only its attention core.");
  visit("microbatch_lengths", s.microbatch_lengths, within(more_than(0)),
        "Factors by microbatch of its times and of its activation and transfer sizes; empty: all "
        "1. For prediction only.");
  visit("jitter", s.jitter, within(Range{.least = 0, .most = 100}),
        "Standard deviation of every duration over its mean, sampled from the seed. For prediction "
        "only.");
  visit("cpu_branch", s.cpu_branch, one_of(cpu_branches()),
        "Instruction set of the CPUs. best: the best that each CPU supports. Machines that must "
        "agree bit for bit need one of the others: avx2 or avx512 on Intel's CPUs, compatible on "
        "all.");
  visit("cuda_graphs", s.cuda_graphs, any(),
        "True if a stage's work for a microbatch is captured as CUDA graphs and launched as a "
        "whole, which speeds up small models that are launch-bound. Needs more memory.");
}

template <MaybeConst<ProfileSettings> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("warm_up", s.warm_up, within(at_least(0)), "Repeats before the measurement.");
  visit("least_repeats", s.least_repeats, within(at_least(1)),
        "Minimum number of repeats. At most most_repeats.");
  visit("most_repeats", s.most_repeats, within(at_least(1)),
        "Maximum number of repeats, whatever the spread is.");
  visit("spread", s.spread, within(more_than(0)),
        "Interquartile range over the median at which measuring stops.");
}

}  // namespace pipewright::plan
