#include "pipewright/sim/causes/why_idle.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "last_reduction.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/quantity_text.hpp"
#include "pipewright/sim/causes/idle.hpp"

namespace pipewright::sim {
namespace {

/// Returns the time of a layer in an instruction of this kind.
double part_of(const plan::LayerCost& layer, plan::InstructionKind kind) {
  return plan::time_of(plan::traits_of(kind).work, layer).value;
}

std::string slowest_layer(const LayersOfStages& layers, const plan::Instruction& instruction) {
  if (layers.costs == nullptr || layers.partition == nullptr)
    return "";
  const auto& boundaries = layers.partition->boundaries;
  const auto stage = static_cast<std::size_t>(instruction.stage);
  if (stage + 1 >= boundaries.size())
    return "";
  const int begin = boundaries[stage], end = boundaries[stage + 1];
  const auto layer = [&](int at) -> const plan::LayerCost& {
    return layers.costs->layers[static_cast<std::size_t>(at)];
  };
  int slowest = begin;
  double all = 0;
  for (int at = begin; at < end; ++at) {
    all += part_of(layer(at), instruction.kind);
    if (part_of(layer(at), instruction.kind) > part_of(layer(slowest), instruction.kind))
      slowest = at;
  }
  if (end - begin < 2 || !(all > 0))
    return "";
  return fmt::format("; the slowest of the {} layers of stage {} is {} ({}), with {} of {}",
                     end - begin, stage, slowest, layer(slowest).name,
                     plan::time_text(part_of(layer(slowest), instruction.kind)),
                     plan::time_text(all));
}

class Reasoning {
 public:
  Reasoning(const Structure& structure, const Times& times, double time,
            const LayersOfStages& layers)
      : structure_(structure), times_(times), time_(time), layers_(layers) {}

  std::string of(int rank) {
    const Neighbors around = neighbors(rank);
    note(around.running >= 0 ? around.running : around.next);
    if (around.running >= 0)
      return fmt::format("rank {} is not idle at {}: it runs {}{}", rank, plan::time_text(time_),
                         span(around.running), layer_of(around.running));
    if (around.next < 0)
      return fmt::format(
          "rank {} is idle from {} to the end of the iteration at {}: it has nothing "
          "left to do{}",
          rank, plan::time_text(around.since), plan::time_text(times_.iteration),
          who_is_last(rank));
    return fmt::format("rank {} is idle from {} to {}: {}{}", rank, plan::time_text(around.since),
                       plan::time_text(times_[around.next].start), name(around.next),
                       reason(around.next, rank, 0));
  }

  std::vector<int> take_chain() { return std::move(chain_); }

 private:
  /// The neighbors of a time in a rank's compute; -1: none.
  struct Neighbors {
    int running = -1;
    int next = -1;
    double since = 0;  // end of the previous action
  };

  const plan::Dependencies& events() const { return structure_.events(); }
  std::string name(int event) const { return plan::to_string(*events()[event].instruction); }
  std::string span(int event) const {
    return fmt::format("{} from {} to {}", name(event), plan::time_text(times_[event].start),
                       plan::time_text(times_[event].end));
  }
  std::string layer_of(int event) const {
    return slowest_layer(layers_, *events()[event].instruction);
  }
  /// Appends the event to the chain.
  void note(int event) {
    if (event >= 0 && (chain_.empty() || chain_.back() != event))
      chain_.push_back(event);
  }

  Neighbors neighbors(int rank) const {
    Neighbors found;
    for (int event = 0; event < structure_.size(); ++event) {
      if (events()[event].rank != rank || !plan::is_compute(events()[event].instruction->kind))
        continue;
      const EventTimes& at = times_[event];
      if (at.start <= time_ && time_ < at.end)
        found.running = event;
      else if (at.end <= time_)
        found.since = std::max(found.since, at.end);
      else if (found.next < 0)
        found.next = event;
    }
    return found;
  }

  std::string who_is_last(int rank) {
    for (int event = 0; event < structure_.size(); ++event)
      if (times_[event].end == times_.iteration && events()[event].rank != rank) {
        note(event);
        return fmt::format("; the iteration ends with {} on rank {}", name(event),
                           events()[event].rank);
      }
    return "";
  }

  /// Returns " waits for …": what `event` of `rank` lacks at the time.
  std::string reason(int event, int rank, int depth) {
    const int transfer = blocking_transfer_before(event);
    if (transfer >= 0)
      return blocking_reason(transfer, rank, depth);
    const bool waits = plan::traits_of(events()[event].instruction->kind).waits_for_collectives;
    const int reduction = waits ? last_reduction(structure_, times_, event) : -1;
    if (reduction >= 0 && time_ < times_[reduction].end)
      return reduction_reason(events().leader_of(reduction));
    const int data = events()[event].data;
    const bool receives = data >= 0 && plan::is_receive(events()[data].instruction->kind);
    if (receives && time_ < times_[data].end)
      return transfer_reason(data, rank, depth);
    const int collective = events()[event].queue;
    if (collective >= 0 && time_ < times_[collective].end)
      return reduction_reason(events().leader_of(collective));
    return nothing(event);
  }

  /// Describes an event that waits for nothing. In a prediction there is none, because every event
  /// starts as soon as it can.
  std::string nothing(int event) const {
    double ready = 0;
    events().for_each_predecessor(
        event, [&](int before, plan::Until) { ready = std::max(ready, times_[before].end); });
    return fmt::format(" waits for nothing: all its inputs were there at {}, {} before it began",
                       plan::time_text(ready), plan::time_text(times_[event].start - ready));
  }

  /// Returns the first transfer before `event` that blocks its rank at the time, or will.
  int blocking_transfer_before(int event) const {
    int found = -1;
    if (!structure_.program().blocking)
      return found;
    for (int before = events()[event].compute; before >= 0; before = events()[before].compute) {
      if (plan::is_compute(events()[before].instruction->kind))
        return found;
      if (time_ < times_[before].end)
        found = before;
    }
    return found;
  }

  std::string blocking_reason(int transfer, int rank, int depth) {
    if (times_[transfer].start <= time_) {
      note(transfer);
      return fmt::format(" waits for the blocking {}", span(transfer));
    }
    if (plan::is_receive(events()[transfer].instruction->kind))
      return fmt::format(" waits for {}, which{}", name(transfer),
                         transfer_reason(transfer, rank, depth));
    note(transfer);
    const int receiver = events()[events()[transfer].partner].rank;
    return fmt::format(" waits for the blocking {}, which begins at {}, when rank {} receives it",
                       name(transfer), plan::time_text(times_[transfer].start), receiver);
  }

  std::string reduction_reason(int reduction) {
    note(reduction);
    if (time_ >= times_[reduction].start)
      return fmt::format(" waits for the reduction {}", span(reduction));
    int latest = -1;
    events().for_each_predecessor(reduction, [&](int before, plan::Until) {
      if (latest < 0 || times_[before].end > times_[latest].end)
        latest = before;
    });
    if (latest < 0)
      return fmt::format(" waits for the reduction {}", span(reduction));
    note(latest);
    return fmt::format(
        " waits for the reduction {}, which cannot begin before {} ends on rank {} "
        "at {}",
        name(reduction), name(latest), events()[latest].rank, plan::time_text(times_[latest].end));
  }

  std::string transfer_reason(int receive, int rank, int depth) {
    const int send = events()[receive].partner;
    const int sender = events()[send].rank;
    const EventTimes& at = times_[send];
    const int maker = events()[send].compute;
    note(receive);
    if (time_ >= at.end)
      return fmt::format(" waits for {}, which waits for another transfer of rank {} until {}",
                         name(receive), rank, plan::time_text(times_[receive].end));
    note(send);
    if (time_ >= at.start)
      return fmt::format(" waits for data from rank {}: {} is on its way from {} to {}", sender,
                         name(send), plan::time_text(at.start), plan::time_text(at.end));
    if (maker >= 0 && time_ >= times_[maker].end)
      return fmt::format(" waits for data from rank {}: {} waits for another transfer until {}",
                         sender, name(send), plan::time_text(at.start));
    if (maker < 0)
      return fmt::format(" waits for data from rank {}", sender);
    note(maker);
    if (time_ >= times_[maker].start)
      return fmt::format(" waits for data from rank {}, which runs {}{}", sender, span(maker),
                         layer_of(maker));
    return fmt::format(" waits for {} of rank {}{}", name(maker), sender, meanwhile(sender, depth));
  }

  /// Describes what the rank that is waited for does at the time.
  std::string meanwhile(int rank, int depth) {
    const Neighbors around = neighbors(rank);
    note(around.running >= 0 ? around.running : around.next);
    if (around.running >= 0)
      return fmt::format(", which first runs {}{}", span(around.running), layer_of(around.running));
    if (around.next < 0 || depth >= 64)
      return ", which is idle as well";
    return fmt::format(", which is idle as well: {}{}", name(around.next),
                       reason(around.next, rank, depth + 1));
  }

  const Structure& structure_;
  const Times& times_;
  double time_;
  const LayersOfStages& layers_;
  std::vector<int> chain_;
};

/// Sets the cause of the idle time, or the interval of the running event.
void set_cause(WhyIdle& why, const Structure& structure, const Times& times, int rank,
               double time) {
  const IdleTime idle = IdleCauses(structure).of(times);
  for (const plan::IdleSpan& span : idle.spans)
    if (span.rank == rank && span.start.value <= time && time < span.end.value) {
      why.cause = span.cause;
      why.start = span.start.value;
      why.end = span.end.value;
    }
  if (!why.cause && !why.chain.empty()) {
    why.start = times[why.chain.front()].start;
    why.end = times[why.chain.front()].end;
  }
}

}  // namespace

WhyIdle why_idle(const Structure& structure, const Times& times, int rank, double time,
                 const LayersOfStages& layers) {
  const auto ranks = static_cast<int>(structure.program().ranks.size());
  if (rank < 0 || rank >= ranks)
    throw plan::InputError(
        fmt::format("there is no rank {}: the program has ranks 0 to {}", rank, ranks - 1));
  if (!(time >= 0) || time > times.iteration)
    throw plan::InputError(fmt::format("{} lies outside the iteration, which lasts {}",
                                       plan::time_text(time), plan::time_text(times.iteration)));
  Reasoning reasoning(structure, times, time, layers);
  WhyIdle why;
  why.sentence = reasoning.of(rank);
  why.chain = reasoning.take_chain();
  set_cause(why, structure, times, rank, time);
  return why;
}

}  // namespace pipewright::sim
