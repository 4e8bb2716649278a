#include <algorithm>
#include <numeric>

#include "straggler/remedy_judge.hpp"

namespace pipewright::trace {
namespace {

/// A microbatch of a step, with the replica that ran it and its compute time over all stages in
/// both directions.
struct Sized {
  int replica = 0;
  int microbatch = 0;
  double seconds = 0;
};
/// The microbatches of each replica in order.
using Dealt = std::vector<std::vector<Sized>>;

enum class MicrobatchOrder { AsItCame, LongestFirst, ShortestFirst };

bool is_longer(const Sized& a, const Sized& b) { return a.seconds > b.seconds; }

class MicrobatchRemedies {
 public:
  explicit MicrobatchRemedies(RemedyJudge& judge) : judge_(judge) {}

  void run() {
    if (judge_.layout().replicas > 1)
      for (const MicrobatchOrder order : {MicrobatchOrder::AsItCame, MicrobatchOrder::LongestFirst,
                                          MicrobatchOrder::ShortestFirst})
        add_dealt("deal out microbatches",
                  "distribute the microbatches of a step evenly over the "
                  "replicas" +
                      order_words(order),
                  true, order);
    add_dealt("sort microbatches", "sort each replica's microbatches, the longest first", false,
              MicrobatchOrder::LongestFirst);
    add_dealt("sort microbatches", "sort each replica's microbatches, the shortest first", false,
              MicrobatchOrder::ShortestFirst);
    even_lengths();
  }

 private:
  static std::string order_words(MicrobatchOrder order) {
    switch (order) {
      case MicrobatchOrder::AsItCame:
        return "";
      case MicrobatchOrder::LongestFirst:
        return ", the longest first";
      case MicrobatchOrder::ShortestFirst:
        return ", the shortest first";
    }
    return {};
  }

  /// With a single stage, a slow machine cannot be distinguished from long microbatches: the latter
  /// are assumed.
  double slower(int worker) const { return judge_.layout().stages > 1 ? judge_.slower(worker) : 1; }

  /// Returns the time of a compute as if the worker were not slow itself.
  double size_of(int worker, Direction direction, int chunk, int microbatch,
                 std::size_t step) const {
    const JobSource& source = judge_.source();
    return source.times(source.compute(worker, direction, chunk, microbatch))[step] /
           slower(worker);
  }

  Dealt sizes_of(std::size_t step) const {
    const JobLayout& layout = judge_.layout();
    const int microbatches = judge_.steps().plan.schedule.microbatches;
    Dealt sizes(static_cast<std::size_t>(layout.replicas));
    for (int replica = 0; replica < layout.replicas; ++replica)
      for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
        Sized own{.replica = replica, .microbatch = microbatch};
        for (int stage = 0; stage < layout.stages; ++stage)
          for (const Direction direction : both_directions)
            for (int chunk = 0; chunk < layout.chunks; ++chunk)
              own.seconds +=
                  size_of(layout.worker(replica, stage), direction, chunk, microbatch, step);
        sizes[static_cast<std::size_t>(replica)].push_back(own);
      }
    return sizes;
  }

  /// Assigns microbatches, the longest first, each to the least loaded replica that has room for
  /// it.
  static Dealt dealt_evenly(const Dealt& sizes) {
    std::vector<Sized> all;
    for (const auto& own : sizes)
      all.insert(all.end(), own.begin(), own.end());
    std::stable_sort(all.begin(), all.end(), is_longer);
    using Load = std::pair<double, std::size_t>;
    std::vector<Load> loads;  // a heap with the smallest on top
    for (std::size_t replica = 0; replica < sizes.size(); ++replica)
      loads.emplace_back(0, replica);
    Dealt dealt(sizes.size());
    for (const Sized& next : all) {
      std::pop_heap(loads.begin(), loads.end(), std::greater<>());
      auto& [load, replica] = loads.back();
      dealt[replica].push_back(next);
      load += next.seconds;
      if (dealt[replica].size() == sizes[replica].size())
        loads.pop_back();
      else
        std::push_heap(loads.begin(), loads.end(), std::greater<>());
    }
    return dealt;
  }

  static void sort(std::vector<Sized>& own, MicrobatchOrder order) {
    std::stable_sort(own.begin(), own.end(), [&](const Sized& a, const Sized& b) {
      switch (order) {
        case MicrobatchOrder::LongestFirst:
          return is_longer(a, b);
        case MicrobatchOrder::ShortestFirst:
          return is_longer(b, a);
        case MicrobatchOrder::AsItCame:
          break;
      }
      return std::pair(a.microbatch, a.replica) < std::pair(b.microbatch, b.replica);
    });
  }

  void add_dealt(const std::string& kind, const std::string& change, bool deals,
                 MicrobatchOrder order) {
    JobTimes times = judge_.steps().recorded;
    for (std::size_t step = 0; step < times.steps(); ++step) {
      Dealt dealt = sizes_of(step);
      if (deals)
        dealt = dealt_evenly(dealt);
      for (auto& own : dealt)
        sort(own, order);
      place(dealt, step, times);
    }
    judge_.add(
        {.kind = kind,
         .change = change,
         .supposed =
             "the time of a microbatch is known before the step from its "
             "sequences, and is the same on every replica except for workers that are slow by "
             "themselves"},
        times);
  }

  void place(const Dealt& dealt, std::size_t step, JobTimes& times) const {
    const auto& nodes = judge_.steps().graph.nodes;
    for (NodeNumber node = 0; node < nodes.size(); ++node) {
      const JobNode& own = nodes[node];
      if (!is_compute(own.operation))
        continue;
      const auto replica = static_cast<std::size_t>(judge_.layout().replica_of(own.worker));
      const Sized& from = dealt[replica][static_cast<std::size_t>(own.microbatch)];
      const Direction direction =
          own.operation == JobOperation::Forward ? Direction::Forward : Direction::Backward;
      const int worker = judge_.layout().worker(from.replica, judge_.layout().stage_of(own.worker));
      times.of(node)[step] =
          size_of(worker, direction, own.chunk, from.microbatch, step) * slower(own.worker);
    }
  }

  /// Gives every compute the mean time of its stage, chunk and direction in the step.
  void even_lengths() {
    JobTimes times = judge_.steps().recorded;
    const JobLayout& layout = judge_.layout();
    const auto& nodes = judge_.steps().graph.nodes;
    const auto slot = [&](const JobNode& node) {
      return static_cast<std::size_t>((layout.stage_of(node.worker) * layout.chunks + node.chunk) *
                                          2 +
                                      (node.operation == JobOperation::Forward ? 0 : 1));
    };
    const double count =
        static_cast<double>(layout.replicas) * judge_.steps().plan.schedule.microbatches;
    for (std::size_t step = 0; step < times.steps(); ++step) {
      std::vector<double> sums(static_cast<std::size_t>(layout.stages * layout.chunks) * 2);
      for (NodeNumber node = 0; node < nodes.size(); ++node)
        if (is_compute(nodes[node].operation))
          sums[slot(nodes[node])] += times.of(node)[step] / slower(nodes[node].worker);
      for (NodeNumber node = 0; node < nodes.size(); ++node)
        if (is_compute(nodes[node].operation))
          times.of(node)[step] = sums[slot(nodes[node])] / count * slower(nodes[node].worker);
    }
    judge_.add({.kind = "even out microbatches",
                .change = "pack sequences so that all microbatches of a step are equally long",
                .supposed = "a bound: the work of a step stays the same, and every microbatch gets "
                            "an equal part of it"},
               times);
  }

  RemedyJudge& judge_;
};

}  // namespace

void try_microbatches(RemedyJudge& judge) { MicrobatchRemedies(judge).run(); }

}  // namespace pipewright::trace
