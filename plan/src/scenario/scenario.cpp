#include "pipewright/plan/scenario/scenario.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/generators/schedule_file.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/hugging_face_shape.hpp"
#include "pipewright/plan/model/model_descriptor.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"
#include "pipewright/plan/partitioners/layer_weights.hpp"
#include "scenario_fields.hpp"

namespace pipewright::plan {
ScheduleRequest request_of(const Pipeline& pipeline) {
  ScheduleRequest request;
  request.name = pipeline.schedule.name;
  request.own = pipeline.schedule.own;
  request.ranks = pipeline.ranks;
  request.microbatches = pipeline.microbatches;
  request.chunks = pipeline.chunks;
  request.group = pipeline.group;
  request.rank_of_stage = pipeline.placement;
  if (pipeline.memory_units > 0)
    request.memory_units = pipeline.memory_units;
  return request;
}

void choose_schedule(Pipeline& pipeline, const std::string& name) {
  const ScheduleDescriptor& entry = find_schedule(name);
  pipeline.schedule = name;
  if (!entry.takes_group)
    pipeline.group = 0;
  if (!entry.takes_memory_units)
    pipeline.memory_units = 0;
  if (!entry.takes_placement())
    pipeline.placement.clear();
}

Topology topology_of(const Pipeline& pipeline) {
  std::vector<int> lengths;
  for (const std::string& axis : pipeline.axes)
    lengths.push_back(axis == "pipe"      ? pipeline.ranks
                      : axis == "data"    ? pipeline.replicas
                      : axis == "context" ? pipeline.context
                                          : pipeline.tensor);
  return {pipeline.axes, lengths};
}

namespace {

/// Reads the model. Returns nothing if the file does not describe a valid one.
std::optional<ModelShape> read_model_of(JsonObject& root) {
  const std::string pointer = root.child("model");
  JsonObject object(root.diagnostics(), pointer);
  return read_model_shape(object);
}

std::filesystem::path beside(const JsonDocument& document, const std::filesystem::path& path) {
  if (path.empty())
    return path;  // an error has been reported, and an empty path cannot be resolved
  const auto folder = std::filesystem::path(document.name()).parent_path();
  return std::filesystem::absolute(folder / path).lexically_normal();
}

/// Checks the sample order: not all kinds of data are one row of values or have documents.
void check_order(JsonObject& object, const DataSource& data, const DataKind& kind) {
  const auto refuse = [&](const char* what) {
    object.error("order", fmt::format("{} {}. Use anywhere.", kind.name, what));
  };
  if (data.order != SampleOrder::Anywhere && !kind.is_row)
    refuse("have an order of their own, shuffled by seed and epoch");
  else if (data.order == SampleOrder::Packed && !kind.has_documents)
    refuse("do not say where documents end, so that they cannot be packed");
}

DataSource read_data(JsonObject& root, const std::optional<ModelShape>& model) {
  const std::string pointer = root.child("data");
  JsonObject object(root.diagnostics(), pointer);
  auto data = read_fields<DataSource>(object);
  if (object.has("path") && data.path.empty() && taken(object, "path", data.path.string()))
    object.error("path", "the path is empty");
  const bool kind_known = object.has("kind") && taken(object, "kind", data.kind);
  if (model && kind_known && model->descriptor().data.name != data.kind)
    object.error("kind", fmt::format("the model {} learns from {}, not from {}", model->kind(),
                                     model->descriptor().data.name, data.kind));
  if (model && kind_known)
    check_order(object, data, model->descriptor().data);
  data.path = beside(root.diagnostics().document(), data.path);
  data.evaluation = beside(root.diagnostics().document(), data.evaluation);
  return data;
}

/// Reads the cluster, inline or from a file that `pipewright profile --links` wrote.
Cluster read_cluster_of(JsonObject& root) {
  if (const auto file = cluster_file(root.diagnostics().document())) {
    root.allow("cluster");
    try {
      return cluster_from_json(JsonDocument::read(*file));
    } catch (const InputError& error) {
      root.diagnostics().add_lines("/cluster", error.what());
      return {};
    }
  }
  const std::string pointer = root.child("cluster");
  JsonObject object(root.diagnostics(), pointer);
  return read_cluster(object);
}

/// Resolves the schedule's text: to `known`, to a file relative to the document, or to a name of
/// the catalog.
void resolve_schedule(JsonObject& object, ScheduleChoice& schedule, const ScheduleChoice& known) {
  const std::string stand_in = schedule_names().front();
  if (!object.has("schedule") || !taken(object, "schedule", schedule.name)) {
    schedule = stand_in;  // an error has been reported
    return;
  }
  std::string name = schedule.name;
  const bool is_file = names_schedule_file(name);
  if (is_file)
    name = beside(object.diagnostics().document(), name).string();
  try {
    if (known.own && known.name == name)
      schedule = known;
    else
      schedule = is_file ? schedule_from_file(name)
                         : ScheduleChoice(object.choice("schedule", schedule_names()));
  } catch (const InputError& error) {
    object.diagnostics().add_lines("/pipeline/schedule", error.what());
    schedule = stand_in;
  }
}

/// Uses the communication settings of a Program for those that the scenario leaves out.
void take_communication(JsonObject& object, Pipeline& pipeline) {
  if (!pipeline.schedule.own || !pipeline.schedule.own->program)
    return;
  const Program& program = *pipeline.schedule.own->program;
  if (!object.has("communicators"))
    pipeline.communicators = program.communicators;
  if (!object.has("transfers"))
    pipeline.transfers = program.transfers;
  if (!object.has("blocking"))
    pipeline.blocking = program.blocking;
}

/// Checks the sizes of a schedule that exists only in fixed sizes, and suggests them.
void check_fixed_sizes(JsonObject& object, const Pipeline& pipeline) {
  if (!pipeline.schedule.own || !pipeline.schedule.own->only)
    return;
  const FixedSizes& only = *pipeline.schedule.own->only;
  const auto check = [&](const char* key, int asked, int has) {
    if (asked != has && taken(object, key, asked))
      object.error(key, fmt::format("{} is for {} {}, but {} are asked for: pipeline.{}={} fits",
                                    pipeline.schedule.label(), has, key, asked, key, has));
  };
  check("ranks", pipeline.ranks, only.ranks);
  check("microbatches", pipeline.microbatches, only.microbatches);
  if (pipeline.chunks != 0 && std::int64_t{pipeline.chunks} * only.ranks != only.stages)
    object.error("chunks",
                 fmt::format("{} has {} stages on {} ranks, but {} for each rank are asked for: "
                             "pipeline.chunks=0 fits",
                             pipeline.schedule.label(), only.stages, only.ranks, pipeline.chunks));
}

void check_placement(JsonObject& object, const Pipeline& pipeline) {
  const std::vector<int>& placement = pipeline.placement;
  if (placement.empty() || !taken(object, "placement", placement))
    return;
  const std::int64_t ranks =
      std::int64_t{*std::max_element(placement.begin(), placement.end())} + 1;
  if (ranks != pipeline.ranks)
    object.error("placement", fmt::format("it has ranks 0 to {}, but pipeline.ranks is {}",
                                          ranks - 1, pipeline.ranks));
  const auto stages = static_cast<std::int64_t>(placement.size());
  if (pipeline.chunks != 0 && std::int64_t{pipeline.chunks} * pipeline.ranks != stages)
    object.error("placement", fmt::format("it has {} stages, but pipeline.chunks is {} on {} ranks",
                                          stages, pipeline.chunks, pipeline.ranks));
}

void check_partition(JsonObject& object, const PartitionChoice& choice) {
  const auto* method = std::get_if<std::string>(&choice);
  if (method == nullptr)
    return;  // boundaries are checked once layers and stages are known
  try {
    check_partition_method(*method);
  } catch (const InputError& error) {
    object.error("partition", error.what());
  }
}

void check_boundaries(JsonObject& object, const Pipeline& pipeline, int stages,
                      std::size_t layers) {
  const auto* boundaries = std::get_if<std::vector<int>>(&pipeline.partition);
  if (boundaries == nullptr || !taken(object, "partition", *boundaries))
    return;
  try {
    require_boundaries(*boundaries, stages, static_cast<int>(layers));
  } catch (const InputError& error) {
    object.error("partition", error.what());
  }
}

void check_stages(JsonObject& object, const Pipeline& pipeline, std::size_t layers) {
  try {
    const int stages = stage_count(request_of(pipeline));
    if (static_cast<std::size_t>(stages) > layers)
      object.error("chunks",
                   fmt::format("{} stages asked for, but the model has {} layers", stages, layers));
    else
      check_boundaries(object, pipeline, stages, layers);
  } catch (const InputError& error) {
    object.error("chunks", error.what());
  }
}

void check_microbatches(JsonObject& object, const Pipeline& pipeline) {
  try {
    const int microbatches = microbatch_count(request_of(pipeline));
    if (std::int64_t{microbatches} * pipeline.replicas > std::numeric_limits<int>::max())
      throw InputError(fmt::format(
          "{} replicas with {} microbatches each are more microbatches than can be counted",
          pipeline.replicas, microbatches));
  } catch (const InputError& error) {
    object.error("microbatches", error.what());
  }
}

void check_axes(JsonObject& object, const std::vector<std::string>& axes) {
  const std::vector<std::string> known = Pipeline{}.axes;
  if (taken(object, "axes", axes) &&
      !std::is_permutation(axes.begin(), axes.end(), known.begin(), known.end()))
    object.error("axes",
                 fmt::format("the axes must be {}, each once, but are {}", fmt::join(known, ", "),
                             axes.empty() ? "none" : fmt::format("{}", fmt::join(axes, ", "))));
}

void check_shards(JsonObject& object, const Pipeline& pipeline) {
  const std::int64_t copies = std::int64_t{pipeline.replicas} * pipeline.context;
  if (pipeline.expert > 0 && copies % pipeline.expert != 0)
    object.error("expert", fmt::format("{} ranks cannot divide the experts: {} replicas times "
                                       "{} ranks along context are not a multiple of it",
                                       pipeline.expert, pipeline.replicas, pipeline.context));
  if (pipeline.sequence_parallel && pipeline.tensor == 1)
    object.error(
        "sequence_parallel",
        "tokens are partitioned only among several tensor-parallel ranks: pipeline.tensor is 1");
  if (copies * pipeline.ranks > std::numeric_limits<int>::max() / pipeline.tensor)
    object.error("tensor",
                 fmt::format("{} ranks x {} replicas x {} along context x {} along tensor are more "
                             "ranks than can be counted",
                             pipeline.ranks, pipeline.replicas, pipeline.context, pipeline.tensor));
}

/// Reports how the cut does not fit the sizes of a transformer.
void check_cut(JsonObject& object, const Pipeline& pipeline, const TransformerShape& shape) {
  const Cut cut{.tensor = pipeline.tensor,
                .sequence_parallel = pipeline.sequence_parallel,
                .context = pipeline.context,
                .expert = pipeline.expert};
  for (const CutFault& fault : faults_of(training_of(shape, 1), cut))
    if (*fault.axis != 0)  // otherwise the fault is not in the cut
      object.error(fault.axis, fault.message);
}

Pipeline read_pipeline(JsonObject& root, const std::optional<ModelShape>& model,
                       const ScheduleChoice& known) {
  const std::string pointer = root.child("pipeline");
  JsonObject object(root.diagnostics(), pointer);
  auto pipeline = read_fields<Pipeline>(object);
  resolve_schedule(object, pipeline.schedule, known);
  take_communication(object, pipeline);
  check_fixed_sizes(object, pipeline);
  check_placement(object, pipeline);
  check_partition(object, pipeline.partition);
  check_microbatches(object, pipeline);
  check_axes(object, pipeline.axes);
  check_shards(object, pipeline);

  if (!model)
    return pipeline;
  if (const auto* const shape = transformer_of(*model); shape != nullptr)
    check_cut(object, pipeline, *shape);
  else if (taken(object, "tensor", pipeline.tensor))
    for (const std::string& fault : model->descriptor().faults_of_cut(*model, pipeline.tensor))
      object.error("tensor", fault);
  const std::size_t layers = model_of(*model).layers.size();
  if (static_cast<std::size_t>(pipeline.ranks) > layers)
    object.error("ranks", fmt::format("{} ranks asked for, but the model has {} layers",
                                      pipeline.ranks, layers));
  else
    check_stages(object, pipeline, layers);
  return pipeline;
}

Training read_training(JsonObject& root, const DataSource& data) {
  const std::string pointer = root.child("training");
  JsonObject object(root.diagnostics(), pointer);
  auto training = read_fields<Training>(object);
  if (training.evaluate_every > 0 && data.evaluation.empty())
    object.error(
        "evaluate_every",
        "there is no evaluation data: set data.evaluation, as data.path is set for training");
  return training;
}

/// Checks that every tensor-parallel rank has whole groups, and that the model can be cut into that
/// many.
void check_tensor_groups(Diagnostics& diagnostics, const Scenario& scenario) {
  const int groups = scenario.training.tensor_groups, shards = scenario.pipeline.tensor;
  if (!diagnostics.empty() || groups == 0)
    return;
  const auto faults_of = [&](int parts) {
    return scenario.model.descriptor().faults_of_cut(scenario.model, parts);
  };
  std::vector<std::string> faults = faults_of(groups);
  if (groups % shards != 0) {
    std::vector<int> would_do;
    const int below = groups - groups % shards;
    for (const int near : {below, below + shards})
      if (near > 0 && faults_of(near).empty())
        would_do.push_back(near);
    if (would_do.empty())
      would_do.push_back(shards);
    faults = {fmt::format("{} groups cannot be divided evenly among {} ranks; {} would do", groups,
                          shards, fmt::join(would_do, " or "))};
  }
  for (const std::string& fault : faults)
    diagnostics.add("/training/tensor_groups", fault);
}

/// Checks that a list with one entry per rank or microbatch has the right length, unless it is
/// empty.
void check_lengths(Diagnostics& diagnostics, const Scenario& scenario) {
  if (!diagnostics.empty())
    return;  // values may be stand-ins for invalid ones
  const auto check = [&](const char* pointer, std::size_t given, int wanted, const char* things) {
    if (given != 0 && given != static_cast<std::size_t>(wanted))
      diagnostics.add(pointer,
                      fmt::format("{} numbers are given for {} {}", given, wanted, things));
  };
  check("/cluster/rank_speeds", scenario.cluster.rank_speeds.size(), scenario.pipeline.ranks,
        "ranks");
  check("/cluster/rank_memory_bytes", scenario.cluster.rank_memory.size(), scenario.pipeline.ranks,
        "ranks");
  check("/training/microbatch_lengths", scenario.training.microbatch_lengths.size(),
        microbatch_count(request_of(scenario.pipeline)), "microbatches");
}

ProfileSettings read_profile(JsonObject& root) {
  const std::string pointer = root.child("profile", /*required=*/false);
  JsonObject object(root.diagnostics(), pointer);
  const auto profile = read_fields<ProfileSettings>(object);
  const bool sound = taken(object, "least_repeats", profile.least_repeats) &&
                     taken(object, "most_repeats", profile.most_repeats);
  if (sound && profile.least_repeats > profile.most_repeats)
    object.error(object.has("least_repeats") ? "least_repeats" : "most_repeats",
                 fmt::format("the least number of repeats, {}, is more than the most, {}",
                             profile.least_repeats, profile.most_repeats));
  return profile;
}

Scenario read_scenario(JsonObject& root, const ScheduleChoice& known) {
  Scenario scenario;
  scenario.name = root.text("name");
  const auto model = read_model_of(root);
  scenario.model = model.value_or(ModelShape{});
  scenario.data = read_data(root, model);
  scenario.cluster = read_cluster_of(root);
  scenario.pipeline = read_pipeline(root, model, known);
  scenario.training = read_training(root, scenario.data);
  scenario.profile = read_profile(root);
  check_lengths(root.diagnostics(), scenario);
  check_tensor_groups(root.diagnostics(), scenario);
  return scenario;
}

}  // namespace

const std::vector<std::string>& decays() {
  static const std::vector<std::string> names{"none", "linear", "cosine"};
  return names;
}

const std::vector<std::string>& decayed_parameters() {
  static const std::vector<std::string> names{"all", "matrices"};
  return names;
}

std::string to_string(Decayed decayed) {
  return decayed_parameters()[static_cast<std::size_t>(decayed)];
}

bool needs_gradient_norm(const Training& training) {
  return training.clip_norm > 0 || training.loss_scale > 0 ||
         training.precision == Precision::MixedHalf;
}

const std::vector<std::string>& sample_orders() {
  static const std::vector<std::string> names{"anywhere", "shuffled", "packed"};
  return names;
}

std::string to_string(SampleOrder order) {
  return sample_orders()[static_cast<std::size_t>(order)];
}

std::string to_string(Decay decay) { return decays()[static_cast<std::size_t>(decay)]; }

const std::vector<std::string>& cpu_branches() {
  static const std::vector<std::string> names{"best", "compatible", "avx2", "avx512"};
  return names;
}

std::string to_string(CpuBranch branch) { return cpu_branches()[static_cast<std::size_t>(branch)]; }

Model model_of(const Scenario& scenario) { return model_of(scenario.model); }

TrainingMemory training_memory(const Scenario& scenario) {
  const Training& training = scenario.training;
  return {.optimizer = training.optimizer,
          .precision = training.precision,
          .recompute = training.recompute,
          .zero = training.zero,
          .shards = training.zero > 0 ? scenario.pipeline.replicas * scenario.pipeline.context : 1,
          .expert = scenario.pipeline.expert,
          .fp32_gradients = training.fp32_gradients,
          .reads_ahead = scenario.data.read_ahead > 0};
}

namespace {

bool has_tied_weights(const Scenario& scenario) {
  return std::ranges::any_of(model_of(scenario).layers,
                             [](const Layer& layer) { return !layer.tied_key.empty(); });
}

}  // namespace

std::vector<std::string> only_predicted(const Scenario& scenario, RankTransport carrier) {
  const auto differ = [](const std::vector<double>& factors) {
    return std::any_of(factors.begin(), factors.end(), [](double factor) { return factor != 1; });
  };
  const Pipeline& pipeline = scenario.pipeline;
  const Training& training = scenario.training;
  // Threads match tensors by name. Gloo has no queues, only one or two connections per pair of
  // ranks. Neither waits for the receiver unless the transfer is blocking.
  const bool has_queues =
      pipeline.communicators == CommunicatorLayout::Edge ||
      (pipeline.communicators == CommunicatorLayout::Pair ? carrier != RankTransport::Threads
                                                          : carrier == RankTransport::Nccl);
  const bool meets = pipeline.transfers == TransferMode::Eager || pipeline.blocking ||
                     carrier == RankTransport::Nccl;
  std::vector<std::string> fields;
  const auto add_if = [&](bool unlike_training, const char* field) {
    if (unlike_training)
      fields.emplace_back(field);
  };
  add_if(!has_queues, "pipeline.communicators");
  add_if(!meets, "pipeline.transfers");
  add_if(pipeline.local_transfer == TensorTransfer::Copy && carrier == RankTransport::Threads,
         "pipeline.local_transfer");
  add_if(pipeline.context > 1, "pipeline.context");
  // No rank has the whole gradient of a tied weight if microbatches' gradients are
  // reduce-scattered.
  add_if(training.zero >= 2 && pipeline.replicas > 1 && has_tied_weights(scenario),
         "training.zero");
  add_if(differ(training.microbatch_lengths), "training.microbatch_lengths");
  add_if(training.jitter != 0, "training.jitter");
  for (const std::string& field : scenario.model.descriptor().only_predicted(scenario.model))
    fields.push_back("model." + field);
  return fields;
}

void require_trainable(const Scenario& scenario, RankTransport carrier) {
  constexpr std::array carriers{"threads of one process", "processes over Gloo",
                                "processes over NCCL"};
  const auto fields = only_predicted(scenario, carrier);
  if (!fields.empty())
    throw InputError(fmt::format(
        "{} {} supported in prediction, but not in training by {}: remove {} to train, or use "
        "`pipewright "
        "simulate`",
        fmt::join(fields, ", "), fields.size() == 1 ? "is" : "are",
        carriers[static_cast<std::size_t>(carrier)], fields.size() == 1 ? "it" : "them"));
}

Json to_json(const Scenario& scenario) {
  return {
      {"format", "pipewright/scenario/1"},          {"name", scenario.name},
      {"model", to_json(scenario.model)},           {"data", fields_json(scenario.data)},
      {"cluster", fields_json(scenario.cluster)},   {"pipeline", fields_json(scenario.pipeline)},
      {"training", fields_json(scenario.training)}, {"profile", fields_json(scenario.profile)}};
}

std::optional<std::filesystem::path> cluster_file(const JsonDocument& document) {
  const Json& root = document.root();
  const auto written = root.is_object() ? root.find("cluster") : root.end();
  if (written == root.end() || !written->is_string())
    return {};
  return beside(document, written->get<std::string>());
}

void put_cluster(JsonDocument& document, const std::filesystem::path& file) {
  Json cluster = to_json(cluster_from_json(JsonDocument::read(file)));
  cluster.erase("format");
  document.set("cluster=" + cluster.dump());
}

Scenario scenario_from_json(const JsonDocument& document, const ScheduleChoice& known) {
  return read_document<Scenario>(document, "pipewright/scenario/1",
                                 [&](JsonObject& root) { return read_scenario(root, known); });
}

Scenario changed(const Scenario& scenario, const std::string& assignment) {
  auto document = JsonDocument::parse(to_json(scenario).dump(), scenario.name);
  document.set(assignment);
  return scenario_from_json(document, scenario.pipeline.schedule);
}

}  // namespace pipewright::plan
