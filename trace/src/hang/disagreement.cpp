#include <algorithm>
#include <map>
#include <tuple>

#include "hang/waits.hpp"

namespace pipewright::trace {
namespace {

using FlightKind = FlightOperation::Kind;

/// The properties of a communication that all its ranks must share. Sizes may differ in scatters
/// and gathers with a root and in all-to-all.
struct Shape {
  std::string name;
  std::int64_t inputs = 0, outputs = 0;
  std::string types;
  friend bool operator==(const Shape&, const Shape&) = default;
  auto as_tuple() const { return std::tie(name, inputs, outputs, types); }
  friend bool operator<(const Shape& a, const Shape& b) { return a.as_tuple() < b.as_tuple(); }
};

Shape shape_of(const FlightOperation& own) {
  if (own.kind != FlightKind::Collective) {
    const FlightTensors& tensors = own.kind == FlightKind::Send ? own.inputs : own.outputs;
    return {"", tensors.numbers, 0, tensors.types};
  }
  const bool is_uneven = own.name.find("all_to_all") != std::string::npos ||
                         own.name.find("alltoall") != std::string::npos || own.name == "gather" ||
                         own.name == "scatter";
  Shape shape{own.name, own.inputs.numbers, own.outputs.numbers,
              own.inputs.types + " " + own.outputs.types};
  if (is_uneven)
    shape.inputs = shape.outputs = 0;
  if (own.name == "gather" || own.name == "scatter")
    shape.types.clear();
  return shape;
}

class Judge {
 public:
  explicit Judge(const std::vector<FlightRecord>& records) : records_(records) {}

  std::optional<Disagreement> of(const Communication& own) const {
    std::map<Shape, std::vector<FlightMember>> by_shape;
    for (const FlightMember& member : own.members)
      by_shape[shape_of(operation_of(records_, member))].push_back(member);
    if (by_shape.size() < 2)
      return {};
    // Sizes and types are compared only if all ranks are in the same collective.
    std::map<std::string, std::vector<FlightMember>> by_name;
    for (const FlightMember& member : own.members)
      by_name[shape_of(operation_of(records_, member)).name].push_back(member);
    if (by_name.size() > 1)
      return Disagreement{rank_of(odd_one(by_name)), true, false};
    const FlightMember odd = odd_one(by_shape);
    const Shape shape = shape_of(operation_of(records_, odd));
    const bool is_sizes = std::any_of(by_shape.begin(), by_shape.end(), [&](const auto& other) {
      return other.first.inputs != shape.inputs || other.first.outputs != shape.outputs;
    });
    return Disagreement{rank_of(odd), false, is_sizes};
  }

 private:
  int rank_of(const FlightMember& member) const {
    return records_[static_cast<std::size_t>(member.record)].rank;
  }

  /// Returns a member of the smallest party. Of two equal parties, prefers the one whose operation
  /// is less like its rank's earlier operations.
  template <class Key>
  FlightMember odd_one(const std::map<Key, std::vector<FlightMember>>& parties) const {
    std::size_t fewest = static_cast<std::size_t>(-1);
    for (const auto& [key, members] : parties)
      fewest = std::min(fewest, members.size());
    const std::vector<FlightMember>* best = nullptr;
    double most = 0;
    for (const auto& [key, members] : parties) {
      if (members.size() != fewest)
        continue;
      const double odd = parties.size() == 2 ? oddness(members.front()) : 0;
      if (best == nullptr || odd > most) {
        best = &members;
        most = odd;
      }
    }
    return best->front();
  }

  /// Measures how unlike the rank's earlier operations of the same kind, group and peer this one
  /// is.
  double oddness(const FlightMember& member) const {
    const FlightRecord& record = records_[static_cast<std::size_t>(member.record)];
    const FlightOperation& own = operation_of(records_, member);
    const Shape shape = shape_of(own);
    int alike = 0, all = 0, alike_by_place = 0;
    for (int at = 0; at < member.operation; ++at) {
      const FlightOperation& other = record.operations[static_cast<std::size_t>(at)];
      if (other.group != own.group || other.kind != own.kind || other.peer != own.peer)
        continue;
      ++all;
      alike += shape_of(other) == shape ? 1 : 0;
      // The preceding operations must also match.
      if (at > 0 && member.operation > 0)
        alike_by_place +=
            shape_of(other) == shape &&
                    is_like(record.operations[static_cast<std::size_t>(at - 1)],
                            record.operations[static_cast<std::size_t>(member.operation - 1)])
                ? 1
                : 0;
    }
    const double share = all == 0 ? 0.5 : static_cast<double>(alike) / all;
    return 2 - share - (alike_by_place > 0 ? 1 : 0);
  }
  static bool is_like(const FlightOperation& a, const FlightOperation& b) {
    return a.kind == b.kind && a.group == b.group && a.peer == b.peer && a.name == b.name;
  }

  const std::vector<FlightRecord>& records_;
};

}  // namespace

std::optional<Disagreement> disagreement(const std::vector<FlightRecord>& records,
                                         const Communications& joined, int communication) {
  return Judge(records).of(joined.all[static_cast<std::size_t>(communication)]);
}

}  // namespace pipewright::trace
