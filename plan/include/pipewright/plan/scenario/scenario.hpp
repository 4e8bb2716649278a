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

/// Order in which samples are taken from a row of numbers. Anywhere: windows at random positions.
/// Shuffled: adjacent windows in random order, each once per epoch. Packed: likewise, with samples
/// that are filled with whole documents.
enum class SampleOrder { Anywhere, Shuffled, Packed };
const std::vector<std::string>& sample_orders();  // anywhere, shuffled, packed
std::string to_string(SampleOrder order);

/// The data of a scenario.
struct DataSource {
  std::string kind;  // the name of a `DataKind`: text, cifar10
  /// A file or a folder, depending on the kind; in a scenario file, relative to the scenario's
  /// folder.
  std::filesystem::path path;
  std::filesystem::path evaluation{};  // likewise, for data that is not trained on; empty: none
  SampleOrder order = SampleOrder::Anywhere;
  int document_end = -1;  // token that ends each document; -1: the file says where they end
  int read_ahead = 2;     // microbatches that a rank reads ahead
  friend bool operator==(const DataSource&, const DataSource&) = default;
};

/// The parallel plan of a scenario.
struct Pipeline {
  int ranks = 2;
  int microbatches = 8;
  ScheduleChoice schedule{};
  int chunks = 0;  // stages per rank; 0: the schedule's minimum
  int group = 0;   // microbatches of a round or of an optimizer step; 0: the schedule's default
  int memory_units = 0;  // memory limit of a rank (`ScheduleRequest`); 0: its device's memory
  std::vector<int> placement{};           // the rank of each stage; empty: the schedule's default
  PartitionChoice partition = "profile";  // what the boundaries balance, or the boundaries
  CommunicatorLayout communicators = CommunicatorLayout::Edge;
  TransferMode transfers = TransferMode::Eager;
  bool blocking = false;
  int replicas = 1;                // data-parallel pipelines
  int tensor = 1;                  // ranks that partition heads, widths and vocabulary of a stage
  bool sequence_parallel = false;  // the tensor-parallel ranks also partition tokens
  int context = 1;                 // ranks that partition each sequence
  int expert = 1;                  // expert-parallel ranks, out of replicas · context
  /// Order of the axes for the coordinates of ranks; the last axis is the fastest.
  std::vector<std::string> axes{"pipe", "data", "context", "tensor"};
  bool overlap_reductions = true;  // with the backward; false: after all compute of the rank
  TensorTransfer hand_over = TensorTransfer::Reference;
  friend bool operator==(const Pipeline&, const Pipeline&) = default;
};

/// Returns the number of ranks of all data-parallel pipelines, counting each tensor-parallel and
/// context-parallel rank.
inline int ranks_of_job(const Pipeline& pipeline) {
  return pipeline.ranks * pipeline.replicas * pipeline.tensor * pipeline.context;
}
/// Returns the topology of the job's ranks, with the axes in their order.
Topology topology_of(const Pipeline& pipeline);

/// Learning-rate decay after the warm-up, until the last step.
enum class Decay { None, Linear, Cosine };
const std::vector<std::string>& decays();  // none, linear, cosine
std::string to_string(Decay decay);

/// CPU instruction set. Machines that must give the same bits need the same one.
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
  double learning_rate = 1e-3;  // the peak
  int warm_up_steps = 0;        // number of steps over which it rises linearly
  Decay decay = Decay::None;    // to 0
  double weight_decay = 0.01;
  Decayed decayed = Decayed::All;  // parameters that weight decay applies to
  double clip_norm = 0;            // largest global norm of the gradients; 0: no clipping
  int gradient_groups = 0;         // gradient-accumulation groups of the batch; 0: one per pipeline
  /// Groups for sums over a partitioned width; 0: one per tensor-parallel rank.
  int tensor_groups = 0;
  int seed = 7;
  Optimizer optimizer = Optimizer::AdamW;
  Precision precision = Precision::Full;
  int zero = 0;  // 1: replicas shard the optimizer state; 2: also gradients; 3: also parameters
  bool fp32_gradients = false;  // under mixed precision, accumulate gradients in fp32
  double loss_scale = 0;        // 0: dynamic in float16, no scaling in other types
  int evaluate_every = 0;       // steps between evaluations on data.evaluation; 0: none
  RecomputeMode recompute = RecomputeMode::None;
  /// Factors for each microbatch's times and for the bytes that it saves and sends. Empty: all 1.
  std::vector<double> microbatch_lengths{};
  double jitter = 0;  // standard deviation of every duration over its mean
  CpuBranch cpu_branch = CpuBranch::Best;
  bool cuda_graphs = false;  // one launch each for a microbatch's forward and backward
  friend bool operator==(const Training&, const Training&) = default;
};

/// Returns true if a step needs the global norm of the gradients: because they are clipped, or
/// because the loss is scaled and they may not be finite.
bool needs_gradient_norm(const Training& training);

/// Limits for measuring a layer: repeats continue until the spread is small enough.
struct ProfileSettings {
  int warm_up = 3;
  int least_repeats = 10;
  int most_repeats = 100;
  double spread = 0.05;  // interquartile range over median
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

/// Returns the request for the pipeline's schedule, with equal times.
ScheduleRequest request_of(const Pipeline& pipeline);

/// Selects another schedule of the catalogue, and resets options that it does not take, such as a
/// group.
void choose_schedule(Pipeline& pipeline, const std::string& name);

/// Returns the training choices that determine memory, for `stage_costs`.
TrainingMemory training_memory(const Scenario& scenario);

/// How the ranks of a training communicate: threads of one process, or processes over Gloo or NCCL.
enum class RankTransport { Threads, Gloo, Nccl };

/// Returns the fields, such as "training.jitter", with values that only the simulator supports, so
/// that a training would not match the scenario.
std::vector<std::string> only_predicted(const Scenario& scenario, RankTransport carrier);
/// Throws InputError if there are any such fields. Call it before training.
void require_trainable(const Scenario& scenario, RankTransport carrier);

Json to_json(const Scenario& scenario);
/// Reads a scenario and checks constraints across fields: more ranks than layers, data that does
/// not fit the model, lists whose length is not the number of ranks or microbatches. `known` is a
/// custom schedule that is not read again if the document names it.
Scenario scenario_from_json(const JsonDocument& document, const ScheduleChoice& known = {});

/// Returns the file that a scenario's document names as its cluster, or nothing if the cluster is
/// inline.
std::optional<std::filesystem::path> cluster_file(const JsonDocument& document);
/// Copies the cluster from a file into a scenario's document, so that its fields can be set. Throws
/// InputError.
void put_cluster(JsonDocument& document, const std::filesystem::path& file);

/// Returns the scenario with one field changed, as in "pipeline.ranks=4". Throws InputError.
Scenario changed(const Scenario& scenario, const std::string& assignment);

}  // namespace pipewright::plan
