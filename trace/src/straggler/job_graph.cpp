#include "pipewright/trace/straggler/job_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "pipewright/plan/error.hpp"

namespace pipewright::trace {
namespace {

/// Returns true for computes that have a transfer in this direction. A split backward sends after
/// its input-gradient half.
bool counts_for(const plan::Action& action, Direction direction) {
  return direction == Direction::Forward ? action.kind == plan::ActionKind::Forward
                                         : plan::makes_input_gradient(action.kind);
}

int stages_of_model(const JobPlan& plan) {
  return plan.rank_of_stage.empty() ? plan.layout.chunks * plan.layout.stages
                                    : static_cast<int>(plan.rank_of_stage.size());
}

int rank_of(const JobPlan& plan, int stage) {
  return plan.rank_of_stage.empty() ? stage % plan.layout.stages
                                    : plan.rank_of_stage[static_cast<std::size_t>(stage)];
}

/// Returns the stage that receives the result of a compute in this direction, or provides its
/// input.
std::optional<int> neighbor(const JobPlan& plan, int stage, Direction direction, bool receives) {
  const int to = stage + ((direction == Direction::Forward) != receives ? 1 : -1);
  return to < 0 || to >= stages_of_model(plan) ? std::nullopt : std::optional(to);
}

bool crosses_ranks(const JobPlan& plan, int stage, Direction direction, bool receives) {
  const auto to = neighbor(plan, stage, direction, receives);
  return to && rank_of(plan, *to) != rank_of(plan, stage);
}

Direction direction_of(JobOperation transfer) {
  return transfer == JobOperation::ForwardSend || transfer == JobOperation::ForwardReceive
             ? Direction::Forward
             : Direction::Backward;
}
bool is_receive(JobOperation transfer) {
  return transfer == JobOperation::ForwardReceive || transfer == JobOperation::BackwardReceive;
}

JobOperation operation_of(plan::ActionKind kind) {
  switch (kind) {
    case plan::ActionKind::Forward:
      return JobOperation::Forward;
    case plan::ActionKind::Backward:
    case plan::ActionKind::InputGradient:
      return JobOperation::Backward;
    case plan::ActionKind::WeightGradient:
      return JobOperation::WeightGradient;
    case plan::ActionKind::Recompute:
      break;
  }
  throw plan::InputError("a schedule with recomputation cannot be replayed");
}

/// Union-find of groups: each node points to another node of its group, the first one to itself.
class Groups {
 public:
  void add() { first_.push_back(static_cast<NodeNumber>(first_.size())); }
  NodeNumber of(NodeNumber node) {
    while (first_[node] != node)
      node = first_[node] = first_[first_[node]];
    return node;
  }
  void join(NodeNumber a, NodeNumber b) {
    a = of(a), b = of(b);
    first_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<NodeNumber> first_;
};

/// A list for each node, stored contiguously: the second elements of the pairs that begin with the
/// node.
struct NodeLists {
  std::vector<std::uint32_t> begins;
  std::vector<NodeNumber> values;

  NodeLists(std::size_t nodes, const std::vector<std::pair<NodeNumber, NodeNumber>>& pairs)
      : begins(nodes + 1), values(pairs.size()) {
    for (const auto& [node, value] : pairs)
      ++begins[node + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<std::uint32_t> next(begins.begin(), begins.end() - 1);
    for (const auto& [node, value] : pairs)
      values[next[node]++] = value;
  }
  std::span<const NodeNumber> of(NodeNumber node) const {
    return std::span(values).subspan(begins[node], begins[node + 1] - begins[node]);
  }
};

class JobGraphMaker {
 public:
  explicit JobGraphMaker(const JobPlan& plan) : plan_(plan) {}

  JobGraph make(const std::vector<std::pair<NodeNumber, NodeNumber>>& joined) {
    for (int replica = 0; replica < plan_.layout.replicas; ++replica) {
      for (int stage = 0; stage < plan_.layout.stages; ++stage)
        add_worker(replica, stage);
      local_transfer();
    }
    for (const auto& [a, b] : joined)
      groups_.join(a, b);
    store_waits();
    put_in_order();
    return std::move(graph_);
  }

 private:
  using Place = std::tuple<JobOperation, int, int>;  // transfer or compute, model stage, microbatch

  NodeNumber add_node(JobNode node) {
    graph_.nodes.push_back(node);
    groups_.add();
    return static_cast<NodeNumber>(graph_.nodes.size() - 1);
  }
  void wait(NodeNumber node, NodeNumber for_node) { waits_.emplace_back(node, for_node); }
  void wait(NodeNumber node, std::optional<NodeNumber> for_node) {
    if (for_node)
      wait(node, *for_node);
  }

  const WorkerShape& shape() const { return plan_.shapes[static_cast<std::size_t>(stage_)]; }
  const std::vector<plan::Action>& actions() const {
    return plan_.schedule.ranks[static_cast<std::size_t>(stage_)];
  }
  int count(JobOperation operation) const { return shape().count[index_of(operation)]; }

  void add_worker(int replica, int stage) {
    stage_ = stage;
    worker_ = plan_.layout.worker(replica, stage);
    add_computes();
    for (const Direction direction : both_directions) {
      add_transfers(send_of(direction));
      add_transfers(receive_of(direction));
    }
    hold_first_backward();
    add_queue();
    add_chain();
  }

  void add_computes() {
    computes_.clear();
    std::array<int, job_operation_count> counted{};
    for (const plan::Action& action : actions()) {
      const JobOperation operation = operation_of(action.kind);
      const NodeNumber node = add_node({operation, worker_, action.stage / plan_.layout.stages,
                                        counted[index_of(operation)]++, action.microbatch});
      if (!computes_.empty())
        wait(node, computes_.back());
      computes_.push_back(node);
      places_[{operation, action.stage, action.microbatch}] = node;
    }
  }

  /// Adds the waits of one kind of transfer: the i-th send waits for the i-th compute of its
  /// direction, the i-th compute for its receive, and a receive for the previous compute. Each of
  /// the four kinds is a queue.
  void add_transfers(JobOperation transfer) {
    const Direction direction = direction_of(transfer);
    const bool receives = is_receive(transfer);
    const bool each_has_one = count(transfer) == computes_of(plan_, stage_, direction);
    if (!each_has_one && count(transfer) != transfers_with_partner(plan_, stage_, transfer))
      refuse_count(transfer);
    std::optional<NodeNumber> before, compute_before;
    int index = 0;
    for (std::size_t at = 0; at < actions().size(); ++at) {
      const plan::Action& action = actions()[at];
      if (!counts_for(action, direction))
        continue;
      const NodeNumber compute = computes_[at];
      if (each_has_one || crosses_ranks(plan_, action.stage, direction, receives)) {
        const NodeNumber node = add_node(
            {transfer, worker_, action.stage / plan_.layout.stages, index++, action.microbatch});
        wait(node, before);
        if (receives) {
          wait(node, compute_before);
          wait(compute, node);
        } else {
          wait(node, compute);
        }
        before = node;
        places_[{transfer, action.stage, action.microbatch}] = node;
      }
      compute_before = compute;
    }
  }

  [[noreturn]] void refuse_count(JobOperation transfer) const {
    const Direction direction = direction_of(transfer);
    throw plan::InputError(fmt::format(
        "stage {} has {} of {} in a step: with {} of {} there are {}, or one for each", stage_,
        count(transfer), name_of(transfer), computes_of(plan_, stage_, direction),
        name_of(compute_of(direction)), transfers_with_partner(plan_, stage_, transfer)));
  }

  /// Makes the first transfers of gradients wait for the compute two before the first backward.
  void hold_first_backward() {
    const auto first = std::find_if(actions().begin(), actions().end(), [](const auto& action) {
      return counts_for(action, Direction::Backward);
    });
    const auto at = first - actions().begin();
    if (first == actions().end() || at < 2)
      return;
    for (const JobOperation transfer : {JobOperation::BackwardReceive, JobOperation::BackwardSend})
      for (NodeNumber node = computes_.front(); node < graph_.nodes.size(); ++node)
        if (graph_.nodes[node].operation == transfer && graph_.nodes[node].index == 0)
          wait(node, computes_[static_cast<std::size_t>(at - 2)]);
  }

  std::optional<NodeNumber> first_compute(Direction direction, int chunk) const {
    for (std::size_t at = 0; at < actions().size(); ++at)
      if (counts_for(actions()[at], direction) && graph_.nodes[computes_[at]].chunk == chunk)
        return computes_[at];
    return {};
  }
  std::optional<NodeNumber> last_backward(int chunk) const {
    for (std::size_t at = actions().size(); at-- > 0;)
      if (actions()[at].kind != plan::ActionKind::Forward &&
          graph_.nodes[computes_[at]].chunk == chunk)
        return computes_[at];
    return {};
  }

  bool sums_during_backwards() const { return count(JobOperation::SeparateSum) > 0; }

  /// Adds the worker's gathers and scatters as one queue. Each begins together on all replicas.
  void add_queue() {
    scatters_.clear();
    std::array<int, job_operation_count> counted{};
    std::optional<NodeNumber> before;
    std::vector<int> scattered;  // chunks
    for (const QueuedCollective& own : shape().queue) {
      const int index = counted[index_of(own.operation)]++;
      const NodeNumber node = add_node({own.operation, worker_, own.chunk, index});
      wait(node, before);
      before = node;
      begin_on_all_copies(node);
      if (own.operation == JobOperation::Gather) {
        if (const auto forward = first_compute(Direction::Forward, own.chunk))
          wait(*forward, node);
        continue;
      }
      scatters_.push_back(node);
      if (sums_during_backwards() &&
          std::find(scattered.begin(), scattered.end(), own.chunk) == scattered.end())
        wait(node, last_backward(own.chunk));
      scattered.push_back(own.chunk);
    }
  }

  /// Adds the operations that end a step, one after the other.
  void add_chain() {
    std::vector<NodeNumber> last;  // of these operations
    if (!computes_.empty())
      last = {computes_.back()};
    add_all(JobOperation::GarbageCollection, last);
    if (sums_during_backwards() && !scatters_.empty())
      last.push_back(scatters_.back());
    add_all(JobOperation::NormSum, last);
    add_all(JobOperation::EmbeddingSum, last);
    if (sums_during_backwards()) {
      add_all(JobOperation::SeparateSum, last);
    } else if (!scatters_.empty()) {
      wait_for_all(scatters_.front(), last);
      last = {scatters_.back()};
    }
    add_all(JobOperation::Clip, last);
    add_all(JobOperation::Optimizer, last);
    graph_.last.insert(graph_.last.end(), last.begin(), last.end());
  }

  void wait_for_all(NodeNumber node, const std::vector<NodeNumber>& last) {
    for (const NodeNumber before : last)
      wait(node, before);
  }

  void add_all(JobOperation operation, std::vector<NodeNumber>& last) {
    for (int index = 0; index < count(operation); ++index) {
      const NodeNumber node = add_node({operation, worker_, -1, index});
      wait_for_all(node, last);
      last = {node};
      if (operation == JobOperation::EmbeddingSum)
        begin_together({operation, plan_.layout.replica_of(worker_), index}, node);
      else if (operation == JobOperation::SeparateSum)
        begin_on_all_copies(node);
      else if (operation == JobOperation::Clip)
        begin_together({operation, 0, index}, node);
    }
  }

  void begin_on_all_copies(NodeNumber node) {
    const JobNode& own = graph_.nodes[node];
    begin_together({own.operation, stage_, own.index}, node);
  }
  void begin_together(const Place& group, NodeNumber node) {
    const auto [first, is_new] = together_.try_emplace(group, node);
    if (!is_new)
      groups_.join(first->second, node);
  }

  /// Joins the two ends of each transfer of a replica; within a rank, the next stage waits for the
  /// compute itself.
  void local_transfer() {
    for (const auto& [place, node] : places_) {
      const auto& [operation, stage, microbatch] = place;
      if (operation != JobOperation::ForwardSend && operation != JobOperation::BackwardSend) {
        if (operation == JobOperation::Forward || operation == JobOperation::Backward)
          hand_over_within(operation, stage, microbatch, node);
        continue;
      }
      const Direction direction = direction_of(operation);
      if (!crosses_ranks(plan_, stage, direction, /*receives=*/false))
        continue;
      const int to = *neighbor(plan_, stage, direction, /*receives=*/false);
      if (const auto other = places_.find({receive_of(direction), to, microbatch});
          other != places_.end())
        groups_.join(node, other->second);
    }
    places_.clear();
  }

  void hand_over_within(JobOperation compute, int stage, int microbatch, NodeNumber node) {
    const Direction direction =
        compute == JobOperation::Forward ? Direction::Forward : Direction::Backward;
    const auto to = neighbor(plan_, stage, direction, /*receives=*/false);
    if (!to || crosses_ranks(plan_, stage, direction, /*receives=*/false))
      return;
    if (const auto next = places_.find({compute, *to, microbatch}); next != places_.end())
      wait(next->second, node);
  }

  void store_waits() {
    const NodeLists lists(graph_.nodes.size(), waits_);
    graph_.wait_begins = lists.begins;
    graph_.waits = lists.values;
    if (graph_.last.empty())
      throw plan::InputError("no worker has an operation");
  }

  /// Sorts the groups topologically (Kahn's algorithm), each represented by its first node.
  void put_in_order() {
    const std::size_t count = graph_.nodes.size();
    std::vector<std::pair<NodeNumber, NodeNumber>> in_group, waiting;
    std::vector<int> open(count);
    for (NodeNumber node = 0; node < count; ++node)
      in_group.emplace_back(groups_.of(node), node);
    for (const auto& [node, before] : waits_) {
      waiting.emplace_back(groups_.of(before), groups_.of(node));
      ++open[groups_.of(node)];
    }
    const NodeLists members(count, in_group), after(count, waiting);
    std::vector<NodeNumber> ready;
    for (NodeNumber node = 0; node < count; ++node)
      if (groups_.of(node) == node && open[node] == 0)
        ready.push_back(node);
    graph_.group_begins.push_back(0);
    for (std::size_t at = 0; at < ready.size(); ++at) {
      const auto own = members.of(ready[at]);
      graph_.members.insert(graph_.members.end(), own.begin(), own.end());
      graph_.group_begins.push_back(static_cast<std::uint32_t>(graph_.members.size()));
      for (const NodeNumber next : after.of(ready[at]))
        if (--open[next] == 0)
          ready.push_back(next);
    }
    if (graph_.members.size() < count)
      refuse_circle(open);
  }

  [[noreturn]] void refuse_circle(const std::vector<int>& open) const {
    const auto stuck = std::find_if(open.begin(), open.end(), [](int left) { return left > 0; });
    const JobNode& node = graph_.nodes[static_cast<std::size_t>(stuck - open.begin())];
    throw plan::InputError(fmt::format(
        "{} {} of dp {} stage {} waits for itself: the order of a step's computes has a cycle",
        name_of(node.operation), node.index, plan_.layout.replica_of(node.worker),
        plan_.layout.stage_of(node.worker)));
  }

  const JobPlan& plan_;
  JobGraph graph_;
  std::vector<std::pair<NodeNumber, NodeNumber>> waits_;  // a node, and one that it waits for
  Groups groups_;
  std::map<Place, NodeNumber> places_;    // of a replica
  std::map<Place, NodeNumber> together_;  // the first node of a group of more than two
  // The worker that is being added.
  int stage_ = 0, worker_ = 0;
  std::vector<NodeNumber> computes_, scatters_;
};

}  // namespace

int transfers_with_partner(const JobPlan& plan, int stage, JobOperation operation) {
  const auto& actions = plan.schedule.ranks[static_cast<std::size_t>(stage)];
  const Direction direction = direction_of(operation);
  return static_cast<int>(std::count_if(actions.begin(), actions.end(), [&](const auto& action) {
    return counts_for(action, direction) &&
           crosses_ranks(plan, action.stage, direction, is_receive(operation));
  }));
}

int computes_of(const JobPlan& plan, int stage, Direction direction) {
  const auto& actions = plan.schedule.ranks[static_cast<std::size_t>(stage)];
  return static_cast<int>(std::count_if(actions.begin(), actions.end(), [&](const auto& action) {
    return counts_for(action, direction);
  }));
}

void set_transfers(JobPlan& plan) {
  for (int stage = 0; stage < plan.layout.stages; ++stage)
    for (const Direction direction : both_directions)
      for (const JobOperation transfer : {send_of(direction), receive_of(direction)})
        plan.shapes[static_cast<std::size_t>(stage)].count[index_of(transfer)] =
            transfers_with_partner(plan, stage, transfer);
}

JobGraph make_job_graph(const JobPlan& plan,
                        const std::vector<std::pair<NodeNumber, NodeNumber>>& joined) {
  return JobGraphMaker(plan).make(joined);
}

}  // namespace pipewright::trace
