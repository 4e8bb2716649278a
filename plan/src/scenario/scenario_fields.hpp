#pragma once

// The fields of a scenario's structs, each in one line: reading, writing and the JSON Schema go
// over them. A field has its key, its value, which values are possible, and what it means.

#include <concepts>
#include <filesystem>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "pipewright/plan/generators/schedule_catalogue.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/alexnet_model.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::plan {

/// Which values a field can have. One that is not needed keeps the value of a plain struct.
struct FieldRule {
  bool needed = false;
  Range range{};
  const std::vector<std::string>* words =
      nullptr;                   // of an enumeration in their order, or of a text
  const char* schema = nullptr;  // instead of what type, range and words say, as JSON
};

inline FieldRule any() { return {}; }
inline FieldRule within(Range range) { return {.range = range}; }
inline FieldRule one_of(const std::vector<std::string>& words) { return {.words = &words}; }
inline FieldRule needed(FieldRule rule) {
  rule.needed = true;
  return rule;
}

template <class Struct, class Plain>
concept MaybeConst = std::same_as<std::remove_const_t<Struct>, Plain>;

// More than any model of today; beyond them sizes could not be counted in 64 bits.
inline constexpr Range size_range{.least = 1, .most = 1'000'000};
inline constexpr Range blocks_range{.least = 1, .most = 10'000};
inline constexpr Range classes_range{.least = 10, .most = 1'000'000};  // CIFAR-10 has 10
// Below 63 nothing is left of the image behind the last pooling.
inline constexpr Range image_range{.least = 63, .most = 10'000};
inline constexpr Range zero_range{.least = 0, .most = 1};

template <MaybeConst<GptShape> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("blocks", s.blocks, within(blocks_range),
        "Transformer blocks; the model has two layers more, embedding and head.");
  visit("hidden", s.hidden, within(size_range), "Width; a multiple of heads.");
  visit("heads", s.heads, within(size_range), "Of the attention.");
  visit("sequence", s.sequence, within(size_range), "Tokens of one sample.");
  visit("vocabulary", s.vocabulary, FieldRule{.range = size_range, .schema = R"({"const": 256})"},
        "The bytes of a text.");
}

template <MaybeConst<AlexNetShape> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("classes", s.classes, within(classes_range), "Of the images; CIFAR-10 has 10.");
  visit("image_size", s.image_size, within(image_range), "Side that the images are enlarged to.");
}

template <MaybeConst<Device> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("name", s.name, needed(any()), "Such as the processor's name.");
  visit("memory_bytes", s.memory, any(), "0: not limited.");
  visit("flops_per_s", s.flops_per_s, within(at_least(0)), "Peak; 0: not known.");
  visit("memory_bandwidth_per_s", s.memory_bandwidth_per_s, within(at_least(0)),
        "Bytes per second; 0: not known.");
}

template <MaybeConst<LinkSegment> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("from_bytes", s.from, needed(any()), "It holds for transfers of so many bytes and more.");
  visit("time_s", s.time, needed(any()), "Seconds that a transfer of from_bytes takes.");
  visit("bandwidth_per_s", s.bandwidth_per_s, needed(within(more_than(0))),
        "Bytes per second, of those beyond from_bytes.");
}

template <MaybeConst<Link> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  const FieldRule segments{.schema = R"({"type": "array", "items": {"$ref": "#/$defs/segment"}})"};
  visit("latency_s", s.latency, needed(any()), "Seconds before the first byte arrives.");
  visit("bandwidth_per_s", s.bandwidth_per_s, needed(within(more_than(0))), "Bytes per second.");
  visit("shared", s.shared, any(),
        "Whether all transfers of a node share it, instead of one link for each pair of ranks.");
  visit("segments", s.segments, segments,
        "Where larger transfers follow another line, by rising from_bytes: the last one that a "
        "transfer reaches says what it takes. All but the link's latency holds the link.");
  visit("sum_bandwidth_per_s", s.sum_bandwidth_per_s, within(at_least(0)),
        "Of a step of a collective's ring; 0: as of a transfer.");
  visit("sum_latency_s", s.sum_latency, any(),
        "Of a step of a collective's ring, with sum_bandwidth_per_s.");
  visit("sum_segments", s.sum_segments, segments,
        "Where larger steps of a collective's ring follow another line than sum_latency_s and "
        "sum_bandwidth_per_s say, as segments.");
  visit("send_overhead_s", s.overheads.send.each, any(),
        "Seconds for which a transfer keeps its sender from computing.");
  visit("send_overhead_bandwidth_per_s", s.overheads.send.bandwidth_per_s, within(at_least(0)),
        "Bytes per second, of what send_overhead_s grows by; 0: by nothing.");
  visit("send_overhead_segments", s.overheads.send.segments, segments,
        "Where larger transfers keep their sender from computing by another line, as segments.");
  visit("receive_overhead_s", s.overheads.receive.each, any(),
        "Seconds for which a transfer keeps its receiver from computing.");
  visit("receive_overhead_bandwidth_per_s", s.overheads.receive.bandwidth_per_s,
        within(at_least(0)),
        "Bytes per second, of what receive_overhead_s grows by; 0: by nothing.");
  visit("receive_overhead_segments", s.overheads.receive.segments, segments,
        "Where larger transfers keep their receiver from computing by another line, as segments.");
  visit("sum_overhead_s", s.overheads.sum.each, any(),
        "Seconds for which a step of a collective's ring keeps a rank from computing.");
  visit("sum_overhead_bandwidth_per_s", s.overheads.sum.bandwidth_per_s, within(at_least(0)),
        "Bytes per second, of what sum_overhead_s grows by; 0: by nothing.");
  visit("sum_overhead_segments", s.overheads.sum.segments, segments,
        "Where larger steps of a collective's ring keep a rank from computing by another line, as "
        "segments.");
}

template <MaybeConst<MachineConstants> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  for (const ConstantRule& rule : constant_rules())
    visit(rule.key, s.*rule.member, within({.least = rule.least, .most = rule.most}), rule.meaning);
}

template <MaybeConst<MachineSpread> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  for (const ConstantRule& rule : constant_rules())
    visit(rule.key, s.*rule.member, within({.least = 0, .most = 10}),
          "Standard deviation of that constant's logarithm: 0.1 is about 10 %.");
}

template <MaybeConst<ReductionTable> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("ranks", s.ranks, needed(within(at_least(2))), "Devices that sum, one for each row.");
  visit("bytes", s.bytes, needed(within(more_than(0))),
        "That each of them has; they rise for one number of ranks.");
  visit("seconds", s.seconds, needed(within(more_than(0))), "That the sum takes.");
}

template <MaybeConst<LayerClass> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("hidden", s.hidden, needed(within(size_range)), "Width of the layer.");
  visit("heads", s.heads, needed(within(size_range)), "Of its attention.");
  visit("sequence", s.sequence, needed(within(at_least(1))), "Tokens of a sample.");
  visit("tensor", s.tensor, needed(within(at_least(1))), "Devices that it is cut among.");
  visit("microbatch", s.microbatch, needed(within(at_least(1))), "Samples.");
  visit("runs", s.runs, needed(within(at_least(1))), "That it was learnt from.");
  visit("layer", s.layer, needed(within(more_than(0))), "Its time over the analytic one.");
  visit("embedding", s.embedding, needed(within(more_than(0))), "The embedding's, likewise.");
  visit("head", s.head, needed(within(more_than(0))), "The head's, likewise.");
}

template <MaybeConst<Machine> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("constants", s.constants, FieldRule{.schema = R"({"$ref": "#/$defs/constants"})"}, "");
  visit("spread", s.spread, FieldRule{.schema = R"({"$ref": "#/$defs/spread"})"}, "");
  visit("reductions", s.reductions, FieldRule{.schema = R"({"$ref": "#/$defs/reductions"})"}, "");
  visit("layers", s.layers,
        FieldRule{.schema = R"({"type": "array", "items": {"$ref": "#/$defs/layer_class"}})"},
        "Classes of layers that runs were measured of.");
  visit("sources", s.sources,
        FieldRule{.schema = R"({"type": "array", "items": {"type": "string"}})"},
        "Where the cluster's figures are from.");
}

template <MaybeConst<Cluster> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  constexpr auto link = R"({"$ref": "#/$defs/link"})";
  visit("name", s.name, needed(any()), "What people call it.");
  visit("nodes", s.nodes, needed(within(at_least(1))), "Equal machines.");
  visit("devices_per_node", s.devices_per_node, needed(within(at_least(1))),
        "Ranks fill the nodes in order.");
  visit("device", s.device, needed(FieldRule{.schema = R"({"$ref": "#/$defs/device"})"}), "");
  visit("within_node", s.within_node, needed(FieldRule{.schema = link}), "");
  visit("between_nodes", s.between_nodes, FieldRule{.needed = s.nodes > 1, .schema = link}, "");
  visit("rank_speeds", s.rank_speeds, within(more_than(0)),
        "By rank: how fast it computes beside the device that was measured; empty: all 1. For "
        "prediction.");
  visit("machine", s.machine, FieldRule{.schema = R"({"$ref": "#/$defs/machine"})"}, "");
}

inline const std::vector<std::string>& data_kinds() {
  static const std::vector<std::string> names{"text", "cifar10"};
  return names;
}

template <MaybeConst<DataSource> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("kind", s.kind, needed(one_of(data_kinds())),
        "text: the bytes of one file, for gpt; cifar10: data_batch_*.bin, for alexnet.");
  visit("path", s.path, needed(FieldRule{.schema = R"({"type": "string", "minLength": 1})"}),
        "The file, or for cifar10 the folder; relative to the folder of this file.");
}

template <MaybeConst<Pipeline> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("ranks", s.ranks, needed(within(at_least(1))),
        "Each has a stage or several; no more than the model has layers.");
  visit("microbatches", s.microbatches, needed(within(at_least(1))), "In one step.");
  visit("schedule", s.schedule, needed(one_of(schedule_names())),
        "In which order a rank does its work.");
  visit("chunks", s.chunks, within(at_least(0)),
        "Stages per rank; 0 or absent: as few as the schedule can have.");
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
  visit("clip_norm", s.clip_norm, within(at_least(0)),
        "The largest global norm of the gradients; 0: any.");
  visit("gradient_groups", s.gradient_groups, within(at_least(0)),
        "The batch's microbatches are added up in so many equal groups, and then the groups: "
        "results do not depend on the number of pipelines among which whole groups are divided. "
        "0: one group for each pipeline.");
  visit("seed", s.seed, within(at_least(0)), "Of the initial weights and of the order of samples.");
  visit("optimizer", s.optimizer, one_of(optimizers()),
        "AdamW keeps two states for each parameter, SGD with momentum one, SGD none.");
  visit("precision", s.precision, one_of(precisions()),
        "full: all in the type that was measured; mixed: parameters and gradients in 2 bytes "
        "(bfloat16), a master copy and the optimizer's states in fp32.");
  visit("zero", s.zero, within(zero_range),
        "1: the optimizer's state, master copy included, is divided among the replicas.");
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

/// A field that is an object with fields of its own.
template <class Value>
concept HasFields = std::same_as<Value, Device> || std::same_as<Value, Link> ||
    std::same_as<Value, LinkSegment> || std::same_as<Value, Machine> ||
    std::same_as<Value, MachineConstants> || std::same_as<Value, MachineSpread> ||
    std::same_as<Value, ReductionTable> || std::same_as<Value, LayerClass>;
/// A list of such objects.
template <class Value>
concept ListsFields =
    std::same_as<Value, std::vector<LinkSegment>> || std::same_as<Value, std::vector<LayerClass>>;

/// Reads each field of the object into the value, which has the defaults.
class FieldReader {
 public:
  explicit FieldReader(JsonObject& object) : object_(object) {}

  template <class Value>
  void operator()(const char* key, Value& value, const FieldRule& rule, const char* /*meaning*/) {
    const std::optional<Value> fallback = rule.needed ? std::nullopt : std::optional(value);
    if constexpr (std::is_same_v<Value, int>)
      value = object_.integer(key, rule.range, fallback);
    else if constexpr (std::is_same_v<Value, double>)
      value = object_.number(key, rule.range, fallback);
    else if constexpr (std::is_same_v<Value, bool>)
      value = object_.flag(key, fallback);
    else if constexpr (std::is_same_v<Value, Seconds>)
      value = object_.seconds(key, fallback);
    else if constexpr (std::is_same_v<Value, Bytes>)
      value = object_.bytes(key, fallback);
    else if constexpr (std::is_same_v<Value, std::vector<double>>)
      value = object_.numbers(key, rule.range, fallback);
    else if constexpr (std::is_same_v<Value, std::string>)
      value = rule.words != nullptr ? object_.choice(key, *rule.words, fallback)
                                    : object_.text(key, fallback);
    else if constexpr (std::is_same_v<Value, std::filesystem::path>)
      value = object_.text(key, rule.needed ? std::nullopt : std::optional(value.string()));
    else if constexpr (std::is_same_v<Value, PartitionChoice>)
      value = read_partition(key, value);
    else if constexpr (HasFields<Value>)
      read_child(key, value, rule);
    else if constexpr (std::is_same_v<Value, std::optional<Machine>>)
      read_machine(key, value, rule);
    else if constexpr (ListsFields<Value>)
      read_list(key, value, rule);
    else if constexpr (std::is_same_v<Value, std::vector<std::string>>)
      value = object_.texts(key, fallback);
    else
      value = read_word(key, value, rule);
  }

 private:
  template <class Value>
  void read_child(const char* key, Value& value, const FieldRule& rule) {
    if (!rule.needed && !object_.has(key))
      return;
    const std::string pointer = object_.child(key);
    JsonObject child(object_.diagnostics(), pointer);
    visit_fields(value, FieldReader(child));
  }

  void read_machine(const char* key, std::optional<Machine>& value, const FieldRule& rule) {
    if (object_.has(key))
      read_child(key, value.emplace(), rule);
    object_.allow(key);
    if (const std::string fault = value ? fault_of(value->reductions) : ""; !fault.empty())
      object_.error(key, "reductions: " + fault);
  }

  template <class Value>
  void read_list(const char* key, Value& value, const FieldRule& rule) {
    for (const std::string& pointer : object_.elements(key, rule.needed)) {
      JsonObject element(object_.diagnostics(), pointer);
      visit_fields(value.emplace_back(), FieldReader(element));
    }
  }

  PartitionChoice read_partition(const char* key, const PartitionChoice& fallback) {
    const Json* value = object_.find(key);
    if (value == nullptr)
      return object_.allow(key), fallback;
    if (value->is_array())
      return object_.integers(key, at_least(0));
    if (value->is_string())
      return object_.text(key);
    object_.allow(key);
    object_.error(key, "a text or a list of boundaries is needed here, such as [0, 2, 5]");
    return fallback;
  }

  template <class Enum>
  Enum read_word(const char* key, Enum fallback, const FieldRule& rule) {
    const std::string word =
        object_.choice(key, *rule.words, (*rule.words)[static_cast<std::size_t>(fallback)]);
    for (std::size_t at = 0; at < rule.words->size(); ++at)
      if ((*rule.words)[at] == word)
        return static_cast<Enum>(at);
    return fallback;
  }

  JsonObject& object_;
};

template <class Struct>
Struct read_fields(JsonObject& object) {
  Struct value;
  visit_fields(value, FieldReader(object));
  return value;
}

template <class Struct>
Json fields_json(const Struct& value);

/// How a field's value stands in a file.
template <class Value>
Json field_json(const Value& value, const FieldRule& rule) {
  if constexpr (std::is_enum_v<Value>)
    return (*rule.words)[static_cast<std::size_t>(value)];
  else if constexpr (std::is_same_v<Value, Seconds> || std::is_same_v<Value, Bytes>)
    return value.value;
  else if constexpr (std::is_same_v<Value, std::filesystem::path>)
    return value.string();
  else if constexpr (HasFields<Value>)
    return fields_json(value);
  else if constexpr (std::is_same_v<Value, std::optional<Machine>>)
    return value ? fields_json(*value) : Json();
  else if constexpr (ListsFields<Value>) {
    Json list = Json::array();
    for (const auto& element : value)
      list.push_back(fields_json(element));
    return list;
  } else if constexpr (std::is_same_v<Value, PartitionChoice>)
    return std::visit([](const auto& choice) { return Json(choice); }, value);
  else
    return value;
}

template <class Struct>
Json fields_json(const Struct& value) {
  Json json = Json::object();
  visit_fields(value, [&](const char* key, const auto& field, const FieldRule& rule,
                          const char* /*meaning*/) {
    Json written = field_json(field, rule);
    if (!written.is_null())  // an optional that is not there
      json[key] = std::move(written);
  });
  return json;
}

}  // namespace pipewright::plan
