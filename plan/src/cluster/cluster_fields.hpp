#pragma once

// Field lists of the structs of a cluster file, one line per field. Reading, writing and the JSON
// Schema use them.

#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/cluster/machine.hpp"
#include "pipewright/plan/json/fields.hpp"

namespace pipewright::plan {

inline constexpr Range node_range{.least = 1, .most = 1'000'000};

template <MaybeConst<Device> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("name", s.name, needed(any()), "Name of the device, such as that of the processor.");
  visit("memory_bytes", s.memory, any(), "Memory in bytes; 0: unlimited.");
  visit("flops_per_s", s.flops_per_s, within(at_least(0)), "Peak FLOPs per second; 0: unknown.");
  visit("memory_bandwidth_per_s", s.memory_bandwidth_per_s, within(at_least(0)),
        "Memory bandwidth in bytes per second; 0: unknown.");
}

template <MaybeConst<LinkSegment> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("from_bytes", s.from, needed(any()),
        "The segment applies to transfers of at least this many bytes.");
  visit("time_s", s.time, needed(any()), "Seconds that a transfer of from_bytes takes.");
  visit("bandwidth_per_s", s.bandwidth_per_s, needed(within(more_than(0))),
        "Bytes per second for the bytes beyond from_bytes.");
}

template <MaybeConst<Link> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  const FieldRule segments{.schema = R"({"type": "array", "items": {"$ref": "#/$defs/segment"}})"};
  visit("latency_s", s.latency, needed(any()), "Seconds before the first byte arrives.");
  visit("bandwidth_per_s", s.bandwidth_per_s, needed(within(more_than(0))), "Bytes per second.");
  visit("shared", s.shared, any(),
        "True if all transfers of a node share the link; false if each pair of ranks has its own "
        "link.");
  visit("segments", s.segments, segments,
        "Segments of the transfer time for larger transfers, by increasing from_bytes. The last "
        "segment that a transfer reaches gives its time. All of it but the link's latency occupies "
        "the link.");
  visit("collective_bandwidth_per_s", s.collective_bandwidth_per_s, within(at_least(0)),
        "Bytes per second of a ring step of a collective; 0: as for transfers.");
  visit("collective_latency_s", s.collective_latency, any(),
        "Latency of a ring step of a collective; used with collective_bandwidth_per_s.");
  visit(
      "collective_segments", s.collective_segments, segments,
      "Segments for larger ring steps of a collective, which deviate from collective_latency_s and "
      "collective_bandwidth_per_s.");
  visit("tensor_parallel_bandwidth_per_s", s.tensor_parallel_bandwidth_per_s, within(at_least(0)),
        "Bytes per second of a ring step of a tensor-parallel all-reduce; 0: as for other "
        "collectives.");
  visit("tensor_parallel_latency_s", s.tensor_parallel_latency, any(),
        "Latency of a ring step of a tensor-parallel all-reduce; used with "
        "tensor_parallel_bandwidth_per_s.");
  visit("tensor_parallel_segments", s.tensor_parallel_segments, segments,
        "Segments for larger ring steps of a tensor-parallel all-reduce, which deviate from "
        "tensor_parallel_latency_s and tensor_parallel_bandwidth_per_s.");
  visit("tensor_parallel_overlap", s.tensor_parallel_overlap, within({.least = 0, .most = 1}),
        "Share of a tensor-parallel all-reduce, from 0 to 1, that overlaps with the compute of the "
        "action that its own action is fused with (OVERLAP_F_B).");
  visit("send_overhead_s", s.overheads.send.each, any(),
        "Seconds for which a transfer keeps its sender from computing.");
  visit("send_overhead_bandwidth_per_s", s.overheads.send.bandwidth_per_s, within(at_least(0)),
        "Bytes per second by which send_overhead_s grows with the size; 0: it does not grow.");
  visit("send_overhead_segments", s.overheads.send.segments, segments,
        "Segments of the sender's overhead for larger transfers.");
  visit("receive_overhead_s", s.overheads.receive.each, any(),
        "Seconds for which a transfer keeps its receiver from computing.");
  visit("receive_overhead_bandwidth_per_s", s.overheads.receive.bandwidth_per_s,
        within(at_least(0)),
        "Bytes per second by which receive_overhead_s grows with the size; 0: it does not grow.");
  visit("receive_overhead_segments", s.overheads.receive.segments, segments,
        "Segments of the receiver's overhead for larger transfers.");
  visit("collective_overhead_s", s.overheads.sum.each, any(),
        "Seconds for which a ring step of a collective keeps a rank from computing.");
  visit(
      "collective_overhead_bandwidth_per_s", s.overheads.sum.bandwidth_per_s, within(at_least(0)),
      "Bytes per second by which collective_overhead_s grows with the size; 0: it does not grow.");
  visit("collective_overhead_segments", s.overheads.sum.segments, segments,
        "Segments of a rank's overhead for larger ring steps of a collective.");
}

template <MaybeConst<LinkLevel> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("name", s.name, needed(any()), "Name of the level, such as spine.");
  visit("group_nodes", s.group_nodes, needed(within(at_least(1))),
        "Number of nodes per group. The level joins these groups; devices within a group use inner "
        "links.");
  visit("oversubscription", s.link.oversubscription, within(at_least(1)),
        "Ratio of what the groups can send at once to what the level carries. Bandwidths are "
        "divided by it.");
  visit_fields(s.link, visit);
}

template <MaybeConst<Fabric> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("rails", s.rails, any(),
        "True if between_nodes joins only devices with the same position in their nodes; other "
        "devices use the first of the levels.");
  visit("levels", s.levels,
        FieldRule{.needed = true,
                  .schema = R"({"type": "array", "items": {"$ref": "#/$defs/level"}})"},
        "Links beyond between_nodes, from the innermost to the outermost.");
}

template <MaybeConst<NodeKind> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("nodes", s.nodes, needed(within(node_range)),
        "Number of nodes of this kind, which follow those of the previous kind.");
  visit("device", s.device, needed(FieldRule{.schema = R"({"$ref": "#/$defs/device"})"}), "");
  visit("speed", s.speed, within(more_than(0)),
        "Compute speed relative to the measured device. For prediction only.");
}

template <MaybeConst<Mixture> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("kinds", s.kinds,
        FieldRule{.needed = true,
                  .schema = R"({"type": "array", "items": {"$ref": "#/$defs/node_kind"}})"},
        "Kinds of nodes, which together make up the nodes of the cluster.");
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
          "Standard deviation of the logarithm of this constant: 0.1 is about 10 %.");
}

template <MaybeConst<ReductionTable> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("ranks", s.ranks, needed(within(at_least(2))),
        "Number of devices in the all-reduce, one for each row.");
  visit("bytes", s.bytes, needed(within(more_than(0))),
        "Bytes per device. They increase within one number of ranks.");
  visit("seconds", s.seconds, needed(within(more_than(0))), "Duration of the all-reduce.");
}

template <MaybeConst<LayerClass> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("hidden", s.hidden, needed(within(size_range)), "Width of the layer.");
  visit("heads", s.heads, needed(within(size_range)), "Number of attention heads.");
  visit("sequence", s.sequence, needed(within(at_least(1))), "Tokens of a sample.");
  visit("tensor", s.tensor, needed(within(at_least(1))), "Tensor-parallel size.");
  visit("microbatch", s.microbatch, needed(within(at_least(1))), "Samples per microbatch.");
  visit("runs", s.runs, needed(within(at_least(1))),
        "Number of runs that the factors were fitted to.");
  visit("layer", s.layer, needed(within(more_than(0))),
        "Time of a layer relative to the analytic time.");
  visit("embedding", s.embedding, needed(within(more_than(0))),
        "Time of the embedding relative to the analytic time.");
  visit("head", s.head, needed(within(more_than(0))),
        "Time of the head relative to the analytic time.");
}

template <MaybeConst<Machine> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  visit("constants", s.constants, FieldRule{.schema = R"({"$ref": "#/$defs/constants"})"}, "");
  visit("spread", s.spread, FieldRule{.schema = R"({"$ref": "#/$defs/spread"})"}, "");
  visit("reductions", s.reductions, FieldRule{.schema = R"({"$ref": "#/$defs/reductions"})"}, "");
  visit("layers", s.layers,
        FieldRule{.schema = R"({"type": "array", "items": {"$ref": "#/$defs/layer_class"}})"},
        "Classes of layers with measured runs.");
  visit("sources", s.sources,
        FieldRule{.schema = R"({"type": "array", "items": {"type": "string"}})"},
        "Sources of the cluster's figures.");
}

template <MaybeConst<Cluster> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  constexpr auto link = R"({"$ref": "#/$defs/link"})";
  visit("name", s.name, needed(any()), "Name of the cluster.");
  visit("nodes", s.nodes, needed(within(node_range)), "Number of nodes, which are equal machines.");
  visit("devices_per_node", s.devices_per_node, needed(within(Range{.least = 1, .most = 2000})),
        "Devices per node. Ranks fill the nodes in order.");
  visit("device", s.device, needed(FieldRule{.schema = R"({"$ref": "#/$defs/device"})"}), "");
  visit("within_node", s.within_node, needed(FieldRule{.schema = link}), "");
  visit("between_nodes", s.between_nodes, FieldRule{.needed = s.nodes > 1, .schema = link}, "");
  visit("rank_speeds", s.rank_speeds, within(more_than(0)),
        "Compute speed of each rank relative to the measured device; empty: all 1. For prediction "
        "only.");
  visit("rank_memory_bytes", s.rank_memory, within(at_least(0)),
        "Memory limit of each rank in bytes, 0 for unlimited; empty: the device's memory. For "
        "prediction only.");
  visit("machine", s.machine, FieldRule{.schema = R"({"$ref": "#/$defs/machine"})"}, "");
  visit("fabric", s.fabric, FieldRule{.schema = R"({"$ref": "#/$defs/fabric"})"}, "");
  visit("mixture", s.mixture, FieldRule{.schema = R"({"$ref": "#/$defs/mixture"})"}, "");
}

}  // namespace pipewright::plan
