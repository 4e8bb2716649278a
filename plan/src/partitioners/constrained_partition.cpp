#include "pipewright/plan/partitioners/constrained_partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "infinity.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/quantity_text.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {
namespace {

constexpr double slack = 1 + 1e-12;  // sums of fractions differ in their last digits
constexpr std::int64_t most_steps = 20'000'000;

double add(double a, double b) { return a + b; }
double larger(double a, double b) { return std::max(a, b); }
using Join = double (*)(double, double);

/// The constraints on a single stage. The memory cap is applied to the stage alone.
class StageRules {
 public:
  explicit StageRules(const PartitionRequest& request)
      : request_(request),
        layers_(static_cast<int>(request.weights.size())),
        border_(index(layers_) + 1) {
    for (const LayerRange& range : request.together)
      for (int inside = range.begin + 1; inside < range.end; ++inside)
        border_[index(inside)] = Border::Forbidden;
    for (const int border : request.borders)
      if (border_[index(border)] == Border::Forbidden)
        contradiction_ = true;
      else
        border_[index(border)] = Border::Demanded;
    // The last demanded border before each end.
    for (int end = 1, demanded = 0; end <= layers_; ++end) {
      if (border_[index(end) - 1] == Border::Demanded)
        demanded = end - 1;
      earliest_.push_back(demanded);
    }
  }

  int layers() const { return layers_; }

  bool allow(int stage, LayerRange range) const {
    const auto has = [&](int count) { return range.end - range.begin == count; };
    if (contradiction_ || range.begin < earliest_[index(range.end) - 1])
      return false;
    if (border_[index(range.begin)] == Border::Forbidden ||
        border_[index(range.end)] == Border::Forbidden)
      return false;
    if (stage == 0 && request_.first && !has(*request_.first))
      return false;
    if (stage + 1 == request_.stages && request_.last && !has(*request_.last))
      return false;
    return !request_.memory_cap || request_.memory(stage, range) <= *request_.memory_cap;
  }

 private:
  enum class Border : char { Allowed, Forbidden, Demanded };
  static std::size_t index(int layer) { return static_cast<std::size_t>(layer); }

  const PartitionRequest& request_;
  int layers_;
  std::vector<Border> border_;
  std::vector<int> earliest_;  // earliest beginning of a stage that ends at i + 1
  bool contradiction_ = false;
};

/// Branch and bound from the last stage to the first. The bound comes from a table over (stages,
/// layers) in which each stage has the whole cap. It is exact if no rank has two stages, and then
/// the search never backtracks.
class Search {
 public:
  using Cost = std::function<double(int stage, LayerRange layers)>;

  /// `cost` is infinite for a stage that is not allowed.
  Search(const PartitionRequest& request, const Cost& cost, Join join)
      : request_(request),
        cost_(cost),
        join_(join),
        layers_(static_cast<int>(request.weights.size())) {
    table_.assign(index(request.stages) + 1, std::vector<double>(index(layers_) + 1, infinity));
    table_[0][0] = 0;
    for (int stage = 0; stage < request.stages; ++stage)
      for (int end = stage + 1; end <= layers_; ++end)
        for (int begin = stage; begin < end; ++begin)
          if (const double before = table_[index(stage)][index(begin)]; before < infinity) {
            double& least = table_[index(stage) + 1][index(end)];
            least = std::min(least, join(before, cost(stage, {begin, end})));
          }
  }

  /// Returns the least cost of any partition; infinite if there is none.
  double least() {
    const double bound = table_.back().back();
    if (!shared_cap() || bound == infinity)
      return bound;
    if (latest_within(bound * slack))
      return bound;
    best_ = infinity;
    improving_ = true;
    descend(request_.stages, layers_, 0);
    return best_;
  }

  /// Returns the latest borders of a partition that costs at most `limit`.
  std::optional<std::vector<int>> latest_within(double limit) {
    best_ = limit;
    improving_ = false;
    borders_.assign(1, layers_);
    held_.assign(index(shared_cap() ? request_.ranks : request_.stages), Bytes{});
    if (!descend(request_.stages, layers_, 0))
      return {};
    return std::vector<int>(borders_.rbegin(), borders_.rend());
  }

 private:
  static std::size_t index(int number) { return static_cast<std::size_t>(number); }
  bool shared_cap() const {
    return request_.memory_cap && request_.ranks > 0 && request_.ranks < request_.stages;
  }

  /// Cuts the first `end` layers into `stages` stages, given that the stages after them cost
  /// `after`. Returns true to end the search.
  bool descend(int stages, int end, double after) {
    if (stages == 0) {
      if (improving_)
        best_ = std::min(best_, after);
      return !improving_;
    }
    for (int begin = end - 1; begin >= stages - 1; --begin) {
      const double before = table_[index(stages) - 1][index(begin)];
      if (before == infinity)
        continue;
      const double here = join_(cost_(stages - 1, {begin, end}), after);
      const double bound = join_(before, here);
      if (bound < infinity && (improving_ ? bound < best_ : bound <= best_) &&
          visit(stages, {begin, end}, here))
        return true;
    }
    return false;
  }

  bool visit(int stages, LayerRange range, double after) {
    if (++steps_ > most_steps)
      throw InputError(fmt::format(
          "{} stages on {} ranks under one memory cap have too many partitions to search: fix some "
          "borders, or have one stage per rank",
          request_.stages, request_.ranks));
    Bytes* held = nullptr;
    Bytes before;
    if (shared_cap()) {
      held = &held_[index((stages - 1) % request_.ranks)];
      before = *held;
      *held += request_.memory(stages - 1, range);
    }
    borders_.push_back(range.begin);
    const bool fits = held == nullptr || *held <= *request_.memory_cap;
    if (fits && descend(stages - 1, range.begin, after))
      return true;
    borders_.pop_back();
    if (held != nullptr)
      *held = before;
    return false;
  }

  const PartitionRequest& request_;
  const Cost& cost_;
  Join join_;
  int layers_;
  // Least cost by number of stages and of layers, from the front.
  std::vector<std::vector<double>> table_;
  double best_ = infinity;  // best so far, or the limit
  // True: search for less than `best_`; false: for at most `best_`.
  bool improving_ = false;
  std::vector<int> borders_;  // last border first
  std::vector<Bytes> held_;   // by rank
  std::int64_t steps_ = 0;
};

std::vector<double> sums_before(const std::vector<double>& weights) {
  std::vector<double> sums{0};
  for (const double weight : weights)
    sums.push_back(sums.back() + weight);
  return sums;
}

std::optional<std::vector<int>> solve(const PartitionRequest& request) {
  const StageRules rules(request);
  const auto sums = sums_before(request.weights);
  const auto weight = [&](LayerRange range) {
    return sums[static_cast<std::size_t>(range.end)] - sums[static_cast<std::size_t>(range.begin)];
  };
  const Search::Cost weight_of = [&](int stage, LayerRange range) {
    return rules.allow(stage, range) ? weight(range) : infinity;
  };
  const double heaviest = Search(request, weight_of, larger).least();
  if (heaviest == infinity)
    return {};

  const double unit = heaviest > 0 ? heaviest : 1;
  const Search::Cost square_of = [&](int stage, LayerRange range) {
    const double share = weight(range) / unit;
    return share <= slack && rules.allow(stage, range) ? share * share : infinity;
  };
  Search squares(request, square_of, add);
  return squares.latest_within(squares.least() * slack);
}

// ---- error messages

std::string text_of(const LayerRange& range) {
  return fmt::format("layers {} to {} together", range.begin, range.end - 1);
}

std::string needs(const LayerRange& range) {
  return range.end - range.begin == 1 ? fmt::format("layer {} alone needs", range.begin)
                                      : text_of(range) + " need";
}

std::string outer_stages(const PartitionRequest& request) {
  if (request.first && request.last)
    return "first and last stage";
  return request.first ? "first stage" : "last stage";
}

void check_layers(const PartitionRequest& request) {
  const auto layers = static_cast<int>(request.weights.size());
  if (request.stages < 1)
    throw InputError(fmt::format("{} stages asked for, the least is 1", request.stages));
  if (request.ranks > 0 && request.stages % request.ranks != 0)
    throw InputError(fmt::format("{} stages do not lie evenly on {} ranks: possible are {}",
                                 request.stages, request.ranks,
                                 nearest_multiples(request.stages, request.ranks, request.ranks)));
  for (const int border : request.borders)
    if (border < 1 || border >= layers)
      throw InputError(fmt::format("a border at layer {} is outside 1 to {}", border, layers - 1));
  for (const LayerRange& range : request.together)
    if (range.begin < 0 || range.end > layers || range.begin >= range.end)
      throw InputError(fmt::format("layers {} to {} cannot be together: there are 0 to {}",
                                   range.begin, range.end - 1, layers - 1));
  for (const auto& count : {request.first, request.last})
    if (count && *count < 1)
      throw InputError(fmt::format("a stage of {} layers asked for, the least is 1", *count));
}

/// Checks that the borders and the layers that must stay together leave room for the number of
/// stages.
void check_counts(const PartitionRequest& request) {
  const auto layers = static_cast<int>(request.weights.size());
  if (layers < request.stages)
    throw Infeasible(
        fmt::format("{} stages need a layer each, but there are {}", request.stages, layers));
  std::vector<bool> joined(request.weights.size() + 1, false);
  for (const LayerRange& range : request.together)
    for (int inside = range.begin + 1; inside < range.end; ++inside)
      joined[static_cast<std::size_t>(inside)] = true;
  for (const int border : request.borders)
    if (joined[static_cast<std::size_t>(border)])
      throw Infeasible(
          fmt::format("the border at layer {} separates layers that must share a stage", border));
  const auto units = layers - static_cast<int>(std::count(joined.begin(), joined.end(), true));
  if (units < request.stages)
    throw Infeasible(fmt::format("layers that share a stage leave {} pieces for {} stages", units,
                                 request.stages));
  const int outer = request.first.value_or(0) + request.last.value_or(0);
  const int inner = request.stages - (request.first ? 1 : 0) - (request.last ? 1 : 0);
  if (outer + inner > layers || (inner <= 0 && outer != layers))
    throw Infeasible(fmt::format("{} layers in the {} leave {} of {} for {} others", outer,
                                 outer_stages(request), layers - outer, layers,
                                 std::max(inner, 0)));
}

/// The request without one of its constraints, and the name of that constraint.
struct Relaxed {
  std::string constraint;
  PartitionRequest request;
};

std::vector<Relaxed> relaxations(const PartitionRequest& request) {
  std::vector<Relaxed> all;
  const auto without = [&](const std::string& constraint) -> PartitionRequest& {
    return all.emplace_back(Relaxed{constraint, request}).request;
  };
  if (request.first)
    without(fmt::format("{} layers in the first stage", *request.first)).first.reset();
  if (request.last)
    without(fmt::format("{} layers in the last stage", *request.last)).last.reset();
  for (std::size_t i = 0; i < request.borders.size(); ++i) {
    auto& borders = without(fmt::format("the border at layer {}", request.borders[i])).borders;
    borders.erase(borders.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (std::size_t i = 0; i < request.together.size(); ++i) {
    auto& together = without(text_of(request.together[i])).together;
    together.erase(together.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return all;
}

/// Returns the partition whose largest stage is smallest, among those that meet all constraints but
/// the cap.
std::vector<int> leanest(const PartitionRequest& request, const PartitionRequest& uncapped) {
  const StageRules rules(uncapped);
  const Search::Cost memory_of = [&](int stage, LayerRange range) {
    return rules.allow(stage, range) ? static_cast<double>(request.memory(stage, range).value)
                                     : infinity;
  };
  Search search(uncapped, memory_of, larger);
  return *search.latest_within(search.least());
}

/// Throws if some layer does not fit on any stage, even by itself.
void blame_single_layer(const PartitionRequest& request) {
  for (int layer = 0; layer < static_cast<int>(request.weights.size()); ++layer) {
    const LayerRange alone{layer, layer + 1};
    Bytes least = request.memory(0, alone);
    for (int stage = 1; stage < request.stages; ++stage)
      least = std::min(least, request.memory(stage, alone));
    if (least > *request.memory_cap)
      throw Infeasible(fmt::format("memory: {} {}, the cap is {}", needs(alone), bytes_text(least),
                                   bytes_text(*request.memory_cap)));
  }
}

[[noreturn]] void blame_memory(const PartitionRequest& request, const PartitionRequest& uncapped) {
  blame_single_layer(request);
  const auto boundaries = leanest(request, uncapped);
  LayerRange worst;
  Bytes most{-1};
  for (int stage = 0; stage < request.stages; ++stage) {
    const LayerRange range{boundaries[static_cast<std::size_t>(stage)],
                           boundaries[static_cast<std::size_t>(stage) + 1]};
    if (request.memory(stage, range) > most)
      most = request.memory(stage, worst = range);
  }
  const std::string cap = bytes_text(*request.memory_cap);
  if (most > *request.memory_cap)
    throw Infeasible(fmt::format("memory: {} {}, and no other cut needs less; the cap is {}",
                                 needs(worst), bytes_text(most), cap));
  throw Infeasible(
      fmt::format("memory: each stage can be kept within {}, but no cut keeps the {} stages of "
                  "every rank within "
                  "it",
                  cap, request.stages / request.ranks));
}

[[noreturn]] void blame(const PartitionRequest& request) {
  PartitionRequest uncapped = request;
  uncapped.memory_cap.reset();
  if (request.memory_cap && solve(uncapped))
    blame_memory(request, uncapped);
  for (const Relaxed& relaxed : relaxations(uncapped))
    if (solve(relaxed.request))
      throw Infeasible(fmt::format("{} stages are not possible with {}; without that they would be",
                                   request.stages, relaxed.constraint));
  throw Infeasible(
      fmt::format("the borders and sizes asked for do not come to {} stages", request.stages));
}

}  // namespace

std::vector<int> constrained_boundaries(const PartitionRequest& request) {
  check_layers(request);
  check_counts(request);
  if (auto boundaries = solve(request))
    return *boundaries;
  blame(request);
}

std::vector<LayerRange> tied_ranges(const Model& model) {
  std::map<std::string, LayerRange> tied;
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    const std::string& key = model.layers[static_cast<std::size_t>(layer)].tied_key;
    if (!key.empty())
      tied.try_emplace(key, LayerRange{layer, layer}).first->second.end = layer + 1;
  }
  std::vector<LayerRange> ranges;
  for (const auto& [key, range] : tied)
    if (range.end - range.begin > 1)
      ranges.push_back(range);
  return ranges;
}

}  // namespace pipewright::plan
