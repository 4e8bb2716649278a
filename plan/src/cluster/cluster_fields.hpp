#pragma once

// Field lists of the structs of a cluster file, one line per field. Reading, writing and the JSON
// Schema use them.

#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/cluster/machine.hpp"
#include "pipewright/plan/json/fields.hpp"

namespace pipewright::plan {

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
  visit("shard_bandwidth_per_s", s.shard_bandwidth_per_s, within(at_least(0)),
        "Of a step of a sum among the shards of a layer; 0: as of other sums.");
  visit("shard_latency_s", s.shard_latency, any(),
        "Of a step of a sum among the shards of a layer, with shard_bandwidth_per_s.");
  visit("shard_segments", s.shard_segments, segments,
        "Where larger steps of such a sum follow another line than shard_latency_s and "
        "shard_bandwidth_per_s say, as segments.");
  visit("shard_overlap", s.shard_overlap, within({.least = 0, .most = 1}),
        "How much of a sum among shards goes on beside the compute of the action that its own is "
        "fused with (OVERLAP_F_B): 0, nothing, to 1.");
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

template <MaybeConst<LinkLevel> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("name", s.name, needed(any()), "Such as spine.");
  visit("group_nodes", s.group_nodes, needed(within(at_least(1))),
        "It joins groups of so many nodes, whose devices reach each other further in.");
  visit("oversubscription", s.link.oversubscription, within(at_least(1)),
        "How many times more the groups can send at once than it carries: bandwidths count divided "
        "by it.");
  visit_fields(s.link, visit);
}

template <MaybeConst<Fabric> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("rails", s.rails, any(),
        "Whether between_nodes joins only devices of equal place in their nodes; the others take "
        "the first of the levels.");
  visit("levels", s.levels,
        FieldRule{.needed = true,
                  .schema = R"({"type": "array", "items": {"$ref": "#/$defs/level"}})"},
        "Links further out than between_nodes, from the inside out.");
}

template <MaybeConst<NodeKind> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("nodes", s.nodes, needed(within(at_least(1))),
        "Those behind the nodes of the kind before.");
  visit("device", s.device, needed(FieldRule{.schema = R"({"$ref": "#/$defs/device"})"}), "");
  visit("speed", s.speed, within(more_than(0)),
        "How fast each computes beside the device that was measured. For prediction.");
}

template <MaybeConst<Mixture> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("kinds", s.kinds,
        FieldRule{.needed = true,
                  .schema = R"({"type": "array", "items": {"$ref": "#/$defs/node_kind"}})"},
        "Their nodes together are those of the cluster.");
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
  visit("rank_memory_bytes", s.rank_memory, within(at_least(0)),
        "By rank: what it may hold, 0 for no limit; empty: what the device has. For prediction.");
  visit("machine", s.machine, FieldRule{.schema = R"({"$ref": "#/$defs/machine"})"}, "");
  visit("fabric", s.fabric, FieldRule{.schema = R"({"$ref": "#/$defs/fabric"})"}, "");
  visit("mixture", s.mixture, FieldRule{.schema = R"({"$ref": "#/$defs/mixture"})"}, "");
}

}  // namespace pipewright::plan
