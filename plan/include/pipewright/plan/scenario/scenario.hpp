#pragma once

// A Scenario is one file that reproduces one run: the model, its data, the cluster, the parallel
// plan, and the training settings.

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/cluster/topology.hpp"
#include "pipewright/plan/costs/training_memory.hpp"
#include "pipewright/plan/generators/schedule_choice.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/model/model.hpp"
#include "pipewright/plan/model/model_shape.hpp"
#include "pipewright/plan/partition/partition.hpp"
#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// The order in which samples are taken from a long sequence of numbers, such as the tokens of a
/// text. Anywhere: windows at random positions. Shuffled: consecutive windows in random order, each
/// once per epoch. Packed: like Shuffled, but each sample is filled with whole documents (longer
/// ones are cut), whose tokens do not attend to other documents.
enum class SampleOrder { Anywhere, Shuffled, Packed };
const std::vector<std::string>& sample_orders();  // anywhere, shuffled, packed
std::string to_string(SampleOrder order);

/// The data of a scenario.
struct DataSource {
  std::string kind;  // the name of a `DataKind`: text, cifar10
  /// A file or a folder, depending on the kind; in a scenario file, relative to the scenario's
  /// folder.
  std::filesystem::path path;
  std::filesystem::path evaluation{};  // the same for evaluation data; empty: none
  SampleOrder order = SampleOrder::Anywhere;
  /// For Packed: the token that ends each document; -1: the file's .idx lists where they end.
  int document_end = -1;
  int read_ahead = 2;  // microbatches that a rank reads ahead
  friend bool operator==(const DataSource&, const DataSource&) = default;
};

/// The parallel plan of a scenario.
struct Pipeline {
  int ranks = 2;         // of one pipeline, without tensor- and context-parallel ranks
  int microbatches = 8;  // per step and data-parallel replica
  ScheduleChoice schedule{};
  int chunks = 0;  // stages per rank; 0: the schedule's minimum
  /// Microbatches of a round or of an optimizer step (ScheduleRequest); 0: the schedule's default.
  int group = 0;
  int memory_units = 0;  // memory limit of a rank (`ScheduleRequest`); 0: its device's memory
  std::vector<int> placement{};  // the rank of each stage; empty: the schedule's default
  /// The quantity that the stage boundaries balance, or the boundaries themselves.
  PartitionChoice partition = "profile";
  CommunicatorLayout communicators = CommunicatorLayout::Edge;
  TransferMode transfers = TransferMode::Eager;
  bool blocking = false;           // a transfer keeps its rank from computing
  int replicas = 1;                // data-parallel replicas of the pipeline
  int tensor = 1;                  // ranks that partition heads, widths and vocabulary of a stage
  bool sequence_parallel = false;  // the tensor-parallel ranks also partition tokens
  int context = 1;                 // context-parallel ranks, which partition each sequence
  int expert = 1;                  // expert-parallel ranks; must divide replicas · context
  /// Order of the axes in the job's rank numbers; the last axis varies fastest.
  std::vector<std::string> axes{"pipe", "data", "context", "tensor"};
  /// Gradients are reduced during the backwards; false: after all compute of the rank.
  bool overlap_reductions = true;
  TensorTransfer local_transfer = TensorTransfer::Reference;
  friend bool operator==(const Pipeline&, const Pipeline&) = default;
};

/// Returns the number of ranks of the job: of all data-parallel replicas, counting each
/// tensor-parallel and context-parallel rank.
inline int ranks_of_job(const Pipeline& pipeline) {
  return pipeline.ranks * pipeline.replicas * pipeline.tensor * pipeline.context;
}
/// Returns the topology of the job's ranks, with the axes in their order.
Topology topology_of(const Pipeline& pipeline);

/// The decay of the learning rate to 0, from the end of the warm-up to the last step.
enum class Decay { None, Linear, Cosine };
const std::vector<std::string>& decays();  // none, linear, cosine
std::string to_string(Decay decay);

/// The instruction set of CPU kernels. Machines that must give the same bits need the same one.
enum class CpuBranch { Best, Compatible, Avx2, Avx512 };
const std::vector<std::string>& cpu_branches();  // best, compatible, avx2, avx512
std::string to_string(CpuBranch branch);

/// Parameters that weight decay applies to: all, or all except norms and biases.
enum class Decayed { All, Matrices };
const std::vector<std::string>& decayed_parameters();  // all, matrices
std::string to_string(Decayed decayed);

/// The training settings of a scenario.
struct Training {
  int steps = 50;
  int microbatch_size = 4;      // samples
  double learning_rate = 1e-3;  // the peak: after the warm-up, before the decay
  int warm_up_steps = 0;        // steps over which the learning rate rises linearly
  Decay decay = Decay::None;
  double weight_decay = 0.01;
  Decayed decayed = Decayed::All;  // parameters that weight decay applies to
  double clip_norm = 0;            // largest global norm of the gradients; 0: no clipping
  /// Number of gradient-accumulation groups of the batch (plan/program/gradient_groups.hpp), which
  /// fixes the summation order. 0: one per pipeline, or per direction of a bidirectional one.
  int gradient_groups = 0;
  /// Number of partial sums of a matrix product over a partitioned width, which fixes the summation
  /// order. 0: one per tensor-parallel rank.
  int tensor_groups = 0;
  int seed = 7;
  Optimizer optimizer = Optimizer::AdamW;
  Precision precision = Precision::Full;
  /// The ZeRO stage. 1: replicas shard the optimizer state; 2: also gradients; 3: also parameters.
  int zero = 0;
  bool fp32_gradients = false;  // under mixed precision, accumulate gradients in fp32
  double loss_scale = 0;        // 0: dynamic in float16, no scaling in other types
  int evaluate_every = 0;       // steps between evaluations on data.evaluation; 0: none
  RecomputeMode recompute = RecomputeMode::None;
  /// Factors by microbatch of its times and of the bytes that it saves and sends. Empty: all 1.
  std::vector<double> microbatch_lengths{};
  double jitter = 0;  // standard deviation of every simulated duration over its mean
  CpuBranch cpu_branch = CpuBranch::Best;
  bool cuda_graphs = false;  // launch each action of a microbatch as one CUDA graph
  friend bool operator==(const Training&, const Training&) = default;
};

/// Returns true if a step needs the global norm of the gradients: because they are clipped, or
/// because the loss is scaled and they may not be finite.
bool needs_gradient_norm(const Training& training);

/// Settings for measuring a layer. The measurement is repeated until its spread is small enough,
/// within the limits of repeats.
struct ProfileSettings {
  int warm_up = 3;  // repeats that are not counted
  int least_repeats = 10;
  int most_repeats = 100;
  double spread = 0.05;  // small enough: interquartile range over median
  friend bool operator==(const ProfileSettings&, const ProfileSettings&) = default;
};

struct Scenario {
  std::string name;
  ModelShape model;  // such as GptShape{.blocks = 3}
  DataSource data;
  Cluster cluster;
  Pipeline pipeline;
  Training training;
  ProfileSettings profile;
  friend bool operator==(const Scenario&, const Scenario&) = default;
};

Model model_of(const Scenario& scenario);

/// Returns the request for the pipeline's schedule, with the same times for all stages and actions.
ScheduleRequest request_of(const Pipeline& pipeline);

/// Selects another schedule of the catalog by name. Resets the options `group`, `memory_units`
/// and `placement` if it does not take them.
void choose_schedule(Pipeline& pipeline, const std::string& name);

/// Returns the settings that determine the memory of a training, for `stage_costs`.
TrainingMemory training_memory(const Scenario& scenario);

/// How the ranks of a training communicate: threads of one process, or processes over Gloo or NCCL.
enum class RankTransport { Threads, Gloo, Nccl };

/// Returns the fields whose values only the simulator supports, such as "training.jitter". A
/// training whose ranks communicate by `carrier` would not match the scenario.
std::vector<std::string> only_predicted(const Scenario& scenario, RankTransport carrier);
/// Throws InputError if there are any such fields. Call it before training.
void require_trainable(const Scenario& scenario, RankTransport carrier);

Json to_json(const Scenario& scenario);
/// Reads a scenario. Throws InputError if it is invalid, also if fields contradict each other: more
/// ranks than layers, data that does not fit the model, or lists whose length is not the number of
/// ranks or microbatches. `known`: a custom schedule that was read before, and is not read again if
/// the document names its file.
Scenario scenario_from_json(const JsonDocument& document, const ScheduleChoice& known = {});

/// Returns the file that a scenario's document names as its cluster; nothing if the cluster is
/// inline.
std::optional<std::filesystem::path> cluster_file(const JsonDocument& document);
/// Replaces the cluster of a scenario's document by that of a file, inline, so that its fields can
/// be set. Throws InputError if the file is not a valid cluster.
void put_cluster(JsonDocument& document, const std::filesystem::path& file);

/// Returns the scenario with one field changed by an assignment such as "pipeline.ranks=4". Throws
/// InputError if the assignment or the resulting scenario is invalid.
Scenario changed(const Scenario& scenario, const std::string& assignment);

}  // namespace pipewright::plan
