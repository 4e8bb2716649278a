#include "pipewright/models/allocator/training_replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "layer_replay.hpp"
#include "pipewright/models/transformer/pipeline_shape.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/schedules/placement_of.hpp"
#include "tape.hpp"

namespace pipewright::models {
namespace {

using replay::LayerSizes;
using replay::Tape;
using replay::Tensor;

constexpr int most_copies = 8;
constexpr long long library_workspace = 32LL << 20;
constexpr int padding_of_vocabulary = 128;

void check_stream(const plan::TransformerTraining& training, const plan::Cut& cut) {
  if (training.precision == plan::ProductPrecision::Single)
    throw plan::InputError("precision: the tensors of 32-bit training are not replayed");
  if (training.attention == plan::AttentionKind::Scores && cut.context > 1)
    throw plan::InputError(
        "context: materialized scores are not replayed with context parallelism");
}

/// A parameter, in the order in which the model creates them.
struct Parameter {
  long long count = 0;
  bool of_experts = false;
};

class RankReplay {
 public:
  RankReplay(const plan::TransformerTraining& training, const plan::Cut& cut,
             const plan::Schedule& schedule, const ReplayedRank& which, replay::Counted counted)
      : training_(training),
        model_(training.model),
        cut_(cut),
        which_(which),
        actions_(schedule.ranks[static_cast<std::size_t>(which.rank)]),
        stages_(placement_of(schedule).stages_on(which.rank)),
        sizes_(training, cut, which.copy),
        tape_(counted),
        layer_(tape_, sizes_) {
    const int multiple = padding_of_vocabulary * cut.tensor;
    vocabulary_cut_ = (model_.vocabulary + multiple - 1) / multiple * multiple / cut.tensor;
    list_parameters();
  }

  AllocatorCounters run() {
    make_model();
    for (int step = 0; step < replayed_steps; ++step) {
      for (const plan::Action& action : actions_)
        run_action(action);
      if (step == 0)
        for (const long long count : shards_)
          for (int state = 0; state < 2; ++state)
            tape_.make(4 * count);
    }
    return tape_.counters();
  }

 private:
  struct Microbatch {
    std::vector<replay::LayerKept> layers{};
    Tensor last_state{}, last_norm{}, logits{};
    std::vector<Tensor> owed{};  // from the first half of the backward for the second
  };

  /// Elements of each unit that FSDP gathers and reduces at once: the embedding, a layer, or the
  /// head.
  using Units = std::vector<long long>;

  bool has_first(int stage) const { return stage == 0; }
  bool has_last(int stage) const { return stage == cut_.stages() - 1; }
  int first_layer(int stage) const {
    int first = 0;
    for (int before = 0; before < stage; ++before)
      first += cut_.layers_of(before, model_.layers);
    return first;
  }
  bool is_sparse(int layer) const {
    return model_.has_mixture() && layer >= model_.leading_dense_layers();
  }

  void add(long long count, bool of_experts = false) {
    if (count <= 0)
      return;
    parameters_.push_back({count, of_experts});
    unit_ += count;
  }
  void end_unit(Units& units) { units.push_back(std::exchange(unit_, 0)); }

  void list_parameters() {
    for (const int stage : stages_) {
      Units& units = units_[stage];
      if (has_first(stage)) {
        add(vocabulary_cut_ * sizes_.hidden);
        add(model_.learned_positions ? 1LL * training_.sequence * sizes_.hidden : 0);
        end_unit(units);
      }
      const int first = first_layer(stage);
      for (int layer = first; layer < first + cut_.layers_of(stage, model_.layers); ++layer) {
        list_layer(layer);
        end_unit(units);
      }
      if (has_last(stage)) {
        add(sizes_.hidden);
        if (!model_.tied || stages_.front() != 0)
          add(vocabulary_cut_ * sizes_.hidden);
        end_unit(units);
      }
    }
  }

  void list_layer(int layer) {
    const long long hidden = sizes_.hidden;
    add(hidden);
    add(hidden * sizes_.values_cut);
    if (model_.is_latent()) {
      add(hidden * sizes_.q_rank);
      add((sizes_.q_rank > 0 ? sizes_.q_rank : hidden) * sizes_.queries_cut);
      add(hidden * (sizes_.kv_rank + sizes_.rope));
      add(sizes_.kv_rank * sizes_.up_keys_values_cut);
    } else {
      add(hidden * (sizes_.queries_cut + 2 * sizes_.keys_cut));
    }
    add(hidden);
    if (is_sparse(layer)) {
      list_experts();
      list_feed_forward(sizes_.shared_feed_forward_cut);
    } else {
      list_feed_forward(sizes_.feed_forward_cut);
    }
  }
  void list_feed_forward(long long width) {
    add(sizes_.gates * width * sizes_.hidden);
    add(width * sizes_.hidden);
  }
  void list_experts() {
    add(sizes_.experts * sizes_.hidden);
    const long long own = sizes_.experts / cut_.expert;
    const long long matrix = sizes_.expert_feed_forward_cut * sizes_.hidden;
    for (const long long count : {sizes_.gates * matrix, matrix})
      for (long long expert = 0; expert < own; ++expert)
        add(count, true);
  }

  /// Allocates parameters, gradients and the optimizer's master weights, then the workspaces of
  /// cuBLAS and TransformerEngine.
  void make_model() {
    if (is_sharded())
      make_shards();
    else
      make_whole_model();
    for (const long long count : shards_) {
      Tensor copied = tape_.make(2 * count);
      tape_.make(4 * count);
      tape_.drop(copied);
    }
    const int workspaces = model_.has_mixture() ? 7 : 3;
    for (int one = 0; one < workspaces; ++one)
      tape_.make(library_workspace);
  }

  /// Allocates parameters one by one, then buffers for all of them and their gradients, into which
  /// they move.
  void make_whole_model() {
    std::vector<Tensor> made;
    for (const Parameter& parameter : parameters_)
      made.push_back(tape_.make(2 * parameter.count));
    for (const bool of_experts : {false, true})
      make_buffers(made, of_experts);
    share_out(false, std::max(1, cut_.data * cut_.context), which_.copy);
    share_out(true, std::max(1, cut_.expert_copies()), which_.copy / std::max(1, cut_.expert));
  }

  /// Returns true for ZeRO 2 and 3 as in FSDP: each parameter is divided among its replicas.
  bool is_sharded() const { return cut_.zero >= 2; }
  void make_shards() {
    const long long copies = std::max(1, cut_.data * cut_.context);
    const long long expert_copies = std::max(1, cut_.expert_copies());
    for (const Parameter& parameter : parameters_) {
      const long long among = parameter.of_experts ? expert_copies : copies;
      shards_.push_back((parameter.count + among - 1) / among);
      tape_.make(2 * (cut_.zero == 2 ? parameter.count : shards_.back()));
      tape_.make(training_.gradient_bytes * shards_.back());
    }
  }

  void make_buffers(std::vector<Tensor>& made, bool of_experts) {
    long long all = 0;
    for (const Parameter& parameter : parameters_)
      all += parameter.of_experts == of_experts ? parameter.count : 0;
    tape_.make(2 * all);
    tape_.make(training_.gradient_bytes * all);
    for (std::size_t at = 0; at < made.size(); ++at)
      if (parameters_[at].of_experts == of_experts)
        tape_.drop(made[at]);
  }

  /// Adds a replica's shard of the buffer, which stores the parameters in reverse order.
  void share_out(bool of_experts, long long copies, long long copy) {
    long long all = 0, at = 0;
    for (const Parameter& parameter : parameters_)
      all += parameter.of_experts == of_experts ? parameter.count : 0;
    if (cut_.zero == 0)
      copies = 1;
    copy %= copies;
    const long long from = copy * all / copies, to = (copy + 1) * all / copies;
    for (auto parameter = parameters_.rbegin(); parameter != parameters_.rend(); ++parameter) {
      if (parameter->of_experts != of_experts)
        continue;
      const long long part = std::min(at + parameter->count, to) - std::max(at, from);
      if (part > 0)
        shards_.push_back(part);
      at += parameter->count;
    }
  }

  void run_action(const plan::Action& action) {
    Microbatch& microbatch = running_[{action.stage, action.microbatch}];
    switch (action.kind) {
      case plan::ActionKind::Forward:
        forward(action.stage, microbatch);
        return;
      case plan::ActionKind::Backward:
        backward(action.stage, microbatch, nullptr);
        break;
      case plan::ActionKind::InputGradient:
        backward(action.stage, microbatch, &microbatch.owed);
        return;
      case plan::ActionKind::WeightGradient:
        weight_gradients(action.stage, microbatch);
        break;
      case plan::ActionKind::Recompute:
        throw plan::InputError("schedule: separate recompute actions are not replayed");
    }
    running_.erase({action.stage, action.microbatch});
  }

  /// Gathered parameters or gradients of units. Two units exist at a time: the one that computes,
  /// and the next or the previous one (Zhao et al., arXiv 2304.11277, 3.3 and 3.4).
  class UnitBuffers {
   public:
    UnitBuffers(Tape& tape, const Units& units, long long bytes_each)
        : tape_(tape), units_(units), bytes_each_(bytes_each), buffers_(units.size()) {}

    void have(std::size_t unit) {
      if (unit < units_.size() && buffers_[unit] == nullptr)
        buffers_[unit] = tape_.make(bytes_each_ * units_[unit]);
    }
    void drop(std::size_t unit) {
      if (unit < units_.size())
        tape_.drop(buffers_[unit]);
    }
    void drop_all() {
      for (Tensor& buffer : buffers_)
        tape_.drop(buffer);
    }

   private:
    Tape& tape_;
    const Units& units_;
    const long long bytes_each_;  // 0: parameters or gradients need no buffers
    std::vector<Tensor> buffers_;
  };

  long long gathered_bytes() const { return cut_.zero == 3 ? 2 : 0; }

  void forward(int stage, Microbatch& microbatch) {
    UnitBuffers parameters(tape_, units_[stage], gathered_bytes());
    std::size_t unit = 0;
    parameters.have(unit);
    parameters.have(unit + 1);
    Tensor state = tape_.make(sizes_.state);
    const auto next_unit = [&] {
      parameters.drop(unit++);
      parameters.have(unit + 1);
    };
    if (has_first(stage))
      next_unit();
    const int first = first_layer(stage);
    for (int layer = first; layer < first + cut_.layers_of(stage, model_.layers); ++layer) {
      microbatch.layers.push_back({.is_sparse = is_sparse(layer)});
      state = layer_.forward(state, microbatch.layers.back());
      next_unit();
    }
    if (!has_last(stage)) {  // sent and then freed
      tape_.drop(state);
      return;
    }
    microbatch.last_state = state;
    microbatch.last_norm = tape_.make(sizes_.state);
    if (sizes_.gathers && global_buffer_ == nullptr)
      global_buffer_ = tape_.make(sizes_.whole_state);
    microbatch.logits = tape_.make(2 * sizes_.tokens * vocabulary_cut_);
    parameters.drop_all();
  }

  /// `owed`: null if the backward is not split.
  void backward(int stage, Microbatch& microbatch, std::vector<Tensor>* owed) {
    const Units& units = units_[stage];
    UnitBuffers parameters(tape_, units, gathered_bytes());
    UnitBuffers gradients(tape_, units, is_sharded() && !owed ? training_.gradient_bytes : 0);
    std::size_t unit = units.size();
    const auto next_unit = [&] {
      parameters.drop(unit);
      gradients.drop(unit + 1);
      --unit;
      parameters.have(unit);
      parameters.have(unit - 1);
      gradients.have(unit);
    };
    if (has_last(stage))
      next_unit();
    Tensor gradient = has_last(stage) ? head_back(microbatch, owed) : tape_.make(sizes_.state);
    while (!microbatch.layers.empty()) {
      next_unit();
      gradient = layer_.backward(gradient, microbatch.layers.back(), owed);
      microbatch.layers.pop_back();
    }
    if (has_first(stage))
      next_unit();
    if (has_first(stage) && !is_sharded())
      tape_.touch(2 * vocabulary_cut_ * sizes_.hidden);
    tape_.drop(gradient);
    parameters.drop_all();
    gradients.drop_all();
  }

  /// Runs the second half of a backward.
  void weight_gradients(int stage, Microbatch& microbatch) {
    const Units& units = units_[stage];
    UnitBuffers gradients(tape_, units, is_sharded() ? training_.gradient_bytes : 0);
    for (std::size_t unit = units.size(); unit-- > 0; gradients.drop(unit + 2))
      gradients.have(unit);
    layer_.weight_gradients(microbatch.owed);
    gradients.drop_all();
  }

  /// The fused loss writes the gradient over the logits, which are copied once.
  Tensor head_back(Microbatch& microbatch, std::vector<Tensor>* owed) {
    Tensor logits = tape_.make(2 * sizes_.tokens * vocabulary_cut_);
    tape_.drop(microbatch.logits);
    Tensor gradient = tape_.make(sizes_.whole_state);
    Tensor scattered = tape_.make(sizes_.gathers ? sizes_.state : 0);
    layer_.weight_gradient(vocabulary_cut_, sizes_.hidden);
    if (sizes_.gathers) {
      tape_.drop(gradient);
      gradient = scattered;
    }
    if (owed != nullptr)
      owed->insert(owed->end(),
                   {std::exchange(logits, nullptr), std::exchange(microbatch.last_norm, nullptr)});
    tape_.drop(logits);
    Tensor of_state = tape_.make(sizes_.state);
    tape_.drop(gradient, microbatch.last_norm, microbatch.last_state);
    return of_state;
  }

  const plan::TransformerTraining& training_;
  const plan::TransformerConfig& model_;
  const plan::Cut& cut_;
  const ReplayedRank which_;
  const std::vector<plan::Action>& actions_;
  const std::vector<int> stages_;
  const LayerSizes sizes_;
  Tape tape_;
  replay::LayerReplay layer_;
  long long vocabulary_cut_ = 0;
  std::vector<Parameter> parameters_{};
  std::vector<long long> shards_{};  // elements of each parameter's shard that this replica updates
  std::map<int, Units> units_{};     // by stage
  long long unit_ = 0;               // size of the unit that is being listed
  std::map<std::pair<int, int>, Microbatch> running_{};  // by stage and microbatch
  Tensor global_buffer_{};
};

}  // namespace

AllocatorCounters replay_training(const plan::TransformerTraining& training, const plan::Cut& cut,
                                  const ReplayedRank& which) {
  check_stream(training, cut);
  const plan::Schedule schedule = shortened_schedule(cut, training.batch);
  return RankReplay(training, cut, schedule, which, replay::Counted::Reserved).run();
}

std::vector<plan::Bytes> allocated_by_rank(const plan::TransformerTraining& training,
                                           const plan::Cut& cut) {
  check_stream(training, cut);
  const plan::Schedule schedule = shortened_schedule(cut, training.batch);
  std::vector<plan::Bytes> ranks;
  for (int rank = 0; rank < cut.pipeline; ++rank)
    ranks.push_back({RankReplay(training, cut, schedule, {.rank = rank}, replay::Counted::Allocated)
                         .run()
                         .peak_allocated});
  return ranks;
}

AllocatorCounters fullest_replay(const plan::TransformerTraining& training, const plan::Cut& cut,
                                 int rank) {
  check_stream(training, cut);
  const plan::Schedule schedule = shortened_schedule(cut, training.batch);
  const int copies = cut.zero == 1 ? cut.data * cut.context : 1;  // replicas that differ
  const int looked_at = std::min(copies, most_copies);
  AllocatorCounters most;
  for (int at = 0; at < looked_at; ++at) {
    const ReplayedRank which{.rank = rank, .copy = at * copies / looked_at};
    const AllocatorCounters one =
        RankReplay(training, cut, schedule, which, replay::Counted::Reserved).run();
    if (one.peak_reserved > most.peak_reserved)
      most = one;
  }
  return most;
}

}  // namespace pipewright::models
