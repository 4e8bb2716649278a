#include "pipewright/sim/explain.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "last_reduction.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::sim {
namespace {

std::string ms(double seconds) { return fmt::format("{:.3f} ms", 1e3 * seconds); }

class Explainer {
 public:
  Explainer(const Structure& structure, const Times& times, double time)
      : structure_(structure), times_(times), time_(time) {}

  std::string of(int rank) {
    const Neighbours around = neighbours(rank);
    if (around.running >= 0)
      return fmt::format("rank {} is not idle at {}: it runs {}", rank, ms(time_),
                         span(around.running));
    if (around.next < 0)
      return fmt::format(
          "rank {} is idle from {} to the end of the iteration at {}: it has nothing "
          "left to do{}",
          rank, ms(around.since), ms(times_.iteration), who_is_last(rank));
    return fmt::format("rank {} is idle from {} to {}: {}{}", rank, ms(around.since),
                       ms(times_[around.next].start), name(around.next),
                       reason(around.next, rank, 0));
  }

 private:
  /// What surrounds the instant in a rank's compute; -1 for nothing.
  struct Neighbours {
    int running = -1;
    int next = -1;
    double since = 0;  // the end of what ran before
  };

  const plan::Dependencies& events() const { return structure_.events(); }
  std::string name(int event) const { return plan::to_string(*events()[event].instruction); }
  std::string span(int event) const {
    return fmt::format("{} from {} to {}", name(event), ms(times_[event].start),
                       ms(times_[event].end));
  }

  Neighbours neighbours(int rank) const {
    Neighbours found;
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

  std::string who_is_last(int rank) const {
    for (int event = 0; event < structure_.size(); ++event)
      if (times_[event].end == times_.iteration && events()[event].rank != rank)
        return fmt::format("; the iteration ends with {} on rank {}", name(event),
                           events()[event].rank);
    return "";
  }

  /// " waits for …": what `event` of `rank` lacks at the instant.
  std::string reason(int event, int rank, int depth) {
    const int transfer = held_up_by_blocking_transfer(event);
    if (transfer >= 0)
      return fmt::format(" stands behind the blocking {}", span(transfer));
    const bool steps = events()[event].instruction->kind == plan::InstructionKind::OptimizerStep;
    const int reduction = steps ? last_reduction(structure_, times_, event) : -1;
    if (reduction >= 0)
      return reduction_reason(events().leader_of(reduction));
    const int data = events()[event].data;
    if (data < 0 || !plan::is_receive(events()[data].instruction->kind))
      return " starts then";
    return transfer_reason(data, rank, depth);
  }

  int held_up_by_blocking_transfer(int event) const {
    if (!structure_.program().blocking)
      return -1;
    for (int before = events()[event].compute; before >= 0; before = events()[before].compute) {
      if (plan::is_compute(events()[before].instruction->kind))
        return -1;
      if (times_[before].start <= time_ && time_ < times_[before].end)
        return before;
    }
    return -1;
  }

  std::string reduction_reason(int reduction) const {
    if (time_ >= times_[reduction].start)
      return fmt::format(" waits for the reduction {}", span(reduction));
    int latest = -1;
    events().for_each_predecessor(reduction, [&](int before, plan::Until) {
      if (latest < 0 || times_[before].end > times_[latest].end)
        latest = before;
    });
    if (latest < 0)
      return fmt::format(" waits for the reduction {}", span(reduction));
    return fmt::format(
        " waits for the reduction {}, which cannot begin before {} ends on rank {} "
        "at {}",
        name(reduction), name(latest), events()[latest].rank, ms(times_[latest].end));
  }

  std::string transfer_reason(int receive, int rank, int depth) {
    const int send = events()[receive].partner;
    const int sender = events()[send].rank;
    const EventTimes& at = times_[send];
    const int maker = events()[send].compute;
    if (time_ >= at.end)
      return fmt::format(" waits for {}, which stands behind another transfer of rank {} until {}",
                         name(receive), rank, ms(times_[receive].end));
    if (time_ >= at.start)
      return fmt::format(" waits for data from rank {}: {} is on its way from {} to {}", sender,
                         name(send), ms(at.start), ms(at.end));
    if (maker >= 0 && time_ >= times_[maker].end)
      return fmt::format(" waits for data from rank {}: {} stands behind another transfer until {}",
                         sender, name(send), ms(at.start));
    if (maker < 0)
      return fmt::format(" waits for data from rank {}", sender);
    if (time_ >= times_[maker].start)
      return fmt::format(" waits for data from rank {}, which runs {}", sender, span(maker));
    return fmt::format(" waits for {} of rank {}{}", name(maker), sender, meanwhile(sender, depth));
  }

  /// What the rank that is waited for does at the instant.
  std::string meanwhile(int rank, int depth) {
    const Neighbours around = neighbours(rank);
    if (around.running >= 0)
      return fmt::format(", which first runs {}", span(around.running));
    if (around.next < 0 || depth >= 64)
      return ", which is idle as well";
    return fmt::format(", which is idle as well: {}{}", name(around.next),
                       reason(around.next, rank, depth + 1));
  }

  const Structure& structure_;
  const Times& times_;
  double time_;
};

}  // namespace

std::string explain(const Structure& structure, const Times& times, int rank, double time) {
  const auto ranks = static_cast<int>(structure.program().ranks.size());
  if (rank < 0 || rank >= ranks)
    throw plan::InputError(
        fmt::format("there is no rank {}: the program has ranks 0 to {}", rank, ranks - 1));
  if (!(time >= 0) || time > times.iteration)
    throw plan::InputError(fmt::format("{} lies outside the iteration, which lasts {}", ms(time),
                                       ms(times.iteration)));
  return Explainer(structure, times, time).of(rank);
}

}  // namespace pipewright::sim
