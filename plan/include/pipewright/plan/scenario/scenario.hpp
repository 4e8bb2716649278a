#pragma once

// A Scenario is one file that reproduces one run: which model on which data, on which cluster, by
// which parallel plan, with which training set-up.

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

/// In which order samples are taken. Anywhere: windows that begin anywhere in a row of numbers.
/// Shuffled: windows one behind the other, each once in an epoch. Packed: the same of samples that
/// are filled with whole documents.
enum class SampleOrder { Anywhere, Shuffled, Packed };
const std::vector<std::string>& sample_orders();  // anywhere, shuffled, packed
std::string to_string(SampleOrder order);

struct DataSource {
  std::string kind;  // the name of a `DataKind`: text, cifar10
  /// A file or a folder, as the kind has it; in a file relative to the scenario's folder.
  std::filesystem::path path;
  std::filesystem::path evaluation{};  // the same of what is not trained on; empty: none
  SampleOrder order = SampleOrder::Anywhere;
  int document_end = -1;  // the token behind each document; -1: the file says where they end
  int read_ahead = 2;     // microbatches of a rank that are read before it comes to them
  friend bool operator==(const DataSource&, const DataSource&) = default;
};

struct Pipeline {
  int ranks = 2;
  int microbatches = 8;
  ScheduleChoice schedule{};
  int chunks = 0;  // stages per rank; 0: as few as the schedule can have
  int group = 0;   // microbatches of a round, or of an optimizer step; 0: as the schedule has it
  int memory_units = 0;  // what a rank may keep (`ScheduleRequest`); 0: what its device holds
  std::vector<int> placement{};           // the rank of each stage; empty: as the schedule has it
  PartitionChoice partition = "profile";  // what the boundaries balance, or they themselves
  CommunicatorLayout communicators = CommunicatorLayout::Edge;
  TransferMode transfers = TransferMode::Eager;
  bool blocking = false;
  int replicas = 1;                // pipelines side by side, which sum their gradients
  int tensor = 1;                  // ranks that share out heads, widths and vocabulary of a stage
  bool sequence_parallel = false;  // between the parts that they cut so, they cut the tokens
  int context = 1;                 // ranks that cut each sequence
  int expert = 1;                  // of replicas · context: ranks that share out the experts
  /// Who is where: coordinates by rank, the last axis the fastest.
  std::vector<std::string> axes{"pipe", "data", "context", "tensor"};
  bool overlap_reductions = true;  // beside the backward; false: behind all compute of the rank
  HandOver hand_over = HandOver::Reference;
  friend bool operator==(const Pipeline&, const Pipeline&) = default;
};

/// How many ranks all pipelines side by side have, each shard of a stage on a rank of its own.
inline int ranks_of_job(const Pipeline& pipeline) {
  return pipeline.ranks * pipeline.replicas * pipeline.tensor * pipeline.context;
}
/// The coordinates of the job's ranks, along the axes in their order.
Topology topology_of(const Pipeline& pipeline);

/// What the learning rate does after its warm-up, until the last step.
enum class Decay { None, Linear, Cosine };
const std::vector<std::string>& decays();  // none, linear, cosine
std::string to_string(Decay decay);

/// With which instructions a CPU computes: machines that shall give the same bits need the same.
enum class CpuBranch { Best, Compatible, Avx2, Avx512 };
const std::vector<std::string>& cpu_branches();  // best, compatible, avx2, avx512
std::string to_string(CpuBranch branch);

/// Of which parameters weight decay takes a part: of all, or not of norms and biases.
enum class Decayed { All, Matrices };
const std::vector<std::string>& decayed_parameters();  // all, matrices
std::string to_string(Decayed decayed);

struct Training {
  int steps = 50;
  int microbatch_size = 4;      // samples
  double learning_rate = 1e-3;  // the highest
  int warm_up_steps = 0;        // it rises linearly over so many
  Decay decay = Decay::None;    // down to 0
  double weight_decay = 0.01;
  Decayed decayed = Decayed::All;  // what the weight decay takes hold of
  double clip_norm = 0;            // the largest global norm of the gradients; 0: any
  int gradient_groups = 0;         // in which the batch is added up; 0: one for each pipeline
  int tensor_groups = 0;           // in which products over a cut width are; 0: one for each shard
  int seed = 7;
  Optimizer optimizer = Optimizer::AdamW;
  Precision precision = Precision::Full;
  int zero = 0;  // 1: the replicas divide the optimizer's state; 2: gradients, 3: parameters, too
  bool fp32_gradients = false;  // under mixed precision they are added up in fp32
  double loss_scale = 0;        // 0: dynamic in float16, and none else
  int evaluate_every = 0;       // steps between evaluations on data.evaluation; 0: none
  RecomputeMode recompute = RecomputeMode::None;
  /// By microbatch: factors of its times and of what it keeps and sends. Empty: all 1.
  std::vector<double> microbatch_lengths{};
  double jitter = 0;  // every duration's standard deviation over its mean
  CpuBranch cpu_branch = CpuBranch::Best;
  bool cuda_graphs = false;  // a microbatch's forward and backward are one launch each
  friend bool operator==(const Training&, const Training&) = default;
};

/// Whether the gradients' global norm is needed before a step: they are clipped, or the loss is
/// scaled, so that they may not be finite.
bool needs_gradient_norm(const Training& training);

/// How long a layer is measured: until the spread is small enough, within bounds.
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

/// The schedule that the pipeline asks for, with equal times.
ScheduleRequest request_of(const Pipeline& pipeline);

/// Takes another schedule of the catalogue, and drops what only others take, such as a group.
void choose_schedule(Pipeline& pipeline, const std::string& name);

/// What the set-up costs in memory, for `stage_costs`.
TrainingMemory training_memory(const Scenario& scenario);

/// Between what a scenario's ranks are when it is trained, and so by what tensors get from one to
/// the next.
enum class Carrier { Threads, Gloo, Nccl };

/// The fields, such as "training.jitter", that are set to something that only the simulator does:
/// training by this scenario would be another than the one that it describes.
std::vector<std::string> only_predicted(const Scenario& scenario, Carrier carrier);
/// Refuses them, for those who are about to train. Throws InputError.
void require_trainable(const Scenario& scenario, Carrier carrier);

Json to_json(const Scenario& scenario);
/// Also checks what no single field shows: more ranks than layers, data that does not fit the
/// model, a list with one entry per rank or microbatch of another length.
/// `known`: a schedule of one's own, which is not read again where the document names it.
Scenario scenario_from_json(const JsonDocument& document, const ScheduleChoice& known = {});

/// The file that a scenario's document names as its cluster; nothing where it has its own inline.
std::optional<std::filesystem::path> cluster_file(const JsonDocument& document);
/// Puts the cluster of a file into a scenario's document, so that fields of it can be set. Throws
/// InputError.
void put_cluster(JsonDocument& document, const std::filesystem::path& file);

/// The scenario with one field set to something else: "pipeline.ranks=4". Throws InputError.
Scenario changed(const Scenario& scenario, const std::string& assignment);

}  // namespace pipewright::plan
