#include "pipewright/profiler/profile/profile.hpp"

#include <ATen/ATen.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "layers/tensor_bytes.hpp"
#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/exec/memory/memory_left.hpp"
#include "pipewright/plan/statistics.hpp"
#include "sections/section_pass.hpp"
#include "sections/section_profile.hpp"

namespace pipewright::profiler {
namespace {

using Clock = std::chrono::steady_clock;

constexpr plan::Bytes kept_free{64'000'000};  // if memory is short

double seconds_from(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Returns how many of `wanted` copies of a section fit into memory; at least one.
int copies_that_fit(const std::vector<LayerOutline>& outlines, const Section& section, int wanted) {
  exec::give_memory_back();
  plan::Bytes each{1}, most;
  for (int layer = section.first; layer < section.last; ++layer) {
    const LayerOutline& outline = outlines[static_cast<std::size_t>(layer)];
    each += outline.training;
    most = std::max(most, outline.activations);
  }
  // An approximation: a pass holds the activations of all layers, but most of the time those of
  // about one layer.
  each += most;
  const std::int64_t room = (exec::memory_left() - kept_free).value;
  return static_cast<int>(std::clamp<std::int64_t>(room / each.value, 1, wanted));
}

/// Sets the times of the samples, and the spread of the passes.
void set_times(plan::LayerCost& cost, const LayerSamples& alone, const LayerSamples& contended) {
  if (alone.forward.empty())  // stopped before the first pass
    return;
  const bool has_parameters = cost.parameters > plan::Bytes{};
  static_cast<plan::LayerTimes&>(cost) = typical_times(alone, has_parameters);
  std::vector<double> sums;  // two forwards per pass, and one backward
  for (std::size_t pass = 0; pass < alone.backward.size(); ++pass)
    sums.push_back(alone.forward[2 * pass] + alone.backward[pass]);
  cost.spread = plan::spread(sums);
  if (!contended.forward.empty())
    cost.contended = typical_times(contended, has_parameters);
}

/// Appends each value divided by the median.
void append_over_median(std::vector<double>& all, const std::vector<double>& values) {
  const double middle = plan::median(values);
  for (const double value : values)
    if (middle > 0)
      all.push_back(value / middle);
}

class Profile {
 public:
  Profile(std::vector<LayerBench*> benches, Cores* cores, const ProfileRequest& request)
      : benches_(std::move(benches)),
        bench_(*benches_.front()),
        cores_(cores),
        request_(request),
        outlines_(request.outlines.empty() ? outlines_of(bench_) : request.outlines),
        wanted_(wanted_places(outlines_, request.known)),
        walk_(bench_, outlines_),
        layers_(outlines_.size()) {}

  Profiled run() {
    const auto copies = static_cast<int>(benches_.size());
    const std::vector<Section> all = sections_of(outlines_, copies, request_.budget);
    std::vector<Section> measured;
    for (const Section& section : all)
      if (is_wanted(section, wanted_))
        measured.push_back(section);
    Profiled found{.costs = about(), .alike = {}, .sections = static_cast<int>(all.size())};
    found.at_once = copies;
    count_ = static_cast<int>(measured.size());
    for (; number_ < count_ && !stopped(); ++number_) {
      const Section& section = measured[static_cast<std::size_t>(number_)];
      const int fit = copies_that_fit(outlines_, section, copies);
      found.at_once = std::min(found.at_once, fit);
      const int passes = measure(section, fit);
      found.passes = number_ == 0 ? passes : std::min(found.passes, passes);
    }
    exec::give_memory_back();
    found.alike = set_costs(found.costs, /*shared=*/all.size() > 1);
    set_ends(found.costs);
    return found;
  }

 private:
  bool stopped() const { return request_.stop != nullptr && request_.stop->load(); }

  plan::LayerCosts about() const {
    plan::LayerCosts costs;
    costs.device = bench_.device().empty() ? cpu_name() : bench_.device();
    costs.dtype = exec::word_of(bench_.setup().precision);
    costs.software = std::string("LibTorch ") + TORCH_VERSION;
    costs.microbatch_size = bench_.setup().microbatch_size;
    costs.tensor = bench_.shard_count();
    costs.busy_cores = static_cast<int>(benches_.size());
    costs.input = bytes_of(walk_.values().front());
    costs.target = bytes_of(walk_.targets());
    return costs;
  }

  /// Returns the number of passes that counted.
  int measure(const Section& section, int copies) {
    walk_.go_to(section.first);
    SectionProfile profile({benches_.begin(), benches_.begin() + copies}, cores_, section,
                           walk_.inputs());
    play(profile);
    append_over_median(whole_, profile.seconds());
    load_.insert(load_.end(), profile.load().begin(), profile.load().end());
    target_load_.insert(target_load_.end(), profile.target_load().begin(),
                        profile.target_load().end());
    int layer = section.first;
    for (MeasuredLayer& of_layer : profile.measured(walk_))
      layers_[static_cast<std::size_t>(layer++)] = std::move(of_layer);
    return profile.passes();
  }

  /// Runs passes until there are enough or the section's share of the time is over.
  void play(SectionProfile& profile) {
    const auto begin = Clock::now();
    const plan::ProfileSettings& settings = request_.settings;
    const bool is_timed = request_.over > plan::Seconds{};
    const double share = (request_.over.value - measured_over_) / (count_ - number_);
    constexpr double of_warm_up = 0.25;
    const auto is_over = [&](double part) {
      return is_timed && seconds_from(begin) >= part * share;
    };
    for (int i = 0; i < settings.warm_up && !stopped() && (i == 0 || !is_over(of_warm_up)); ++i)
      profile.pass(/*counts=*/false);
    while (!stopped()) {
      profile.pass(/*counts=*/true);
      const double spread = profile.spread();
      if (request_.report)
        request_.report({profile.passes(),
                         spread,
                         {measured_over_ + seconds_from(begin)},
                         number_ + 1,
                         count_});
      const bool enough = profile.passes() >= settings.most_repeats ||
                          (profile.passes() >= settings.least_repeats && spread <= settings.spread);
      const bool ends_early =
          request_.enough_passes > 0 && profile.passes() >= request_.enough_passes;
      if (is_timed ? is_over(1) || ends_early : enough)
        break;
    }
    measured_over_ += seconds_from(begin);
  }

  /// Sets each layer's costs: its own, or if they are `shared`, those of all places of its kind.
  std::vector<EquivalentLayers> set_costs(plan::LayerCosts& costs, bool shared) {
    costs.layers.resize(outlines_.size() - 1);
    const auto cost_of = [&](int layer) -> plan::LayerCost& {
      return layer < bench_.loss() ? costs.layers[static_cast<std::size_t>(layer)] : costs.loss;
    };
    for (int layer = 0; layer <= bench_.loss(); ++layer) {
      plan::LayerCost& cost = cost_of(layer);
      if (const auto& measured = layers_[static_cast<std::size_t>(layer)]) {
        cost = measured->rest;
        set_times(cost, measured->alone, contended_of(*measured));
      }
      cost.name = bench_.name(layer);
    }
    std::vector<EquivalentLayers> kinds = alike_layers(outlines_);
    for (EquivalentLayers& kind : kinds) {
      note_places(kind, cost_of);
      if (kind.measured.empty())
        continue;
      kind.typical = of_all_places(kind);
      for (const int layer : kind.layers)
        if (shared) {
          cost_of(layer) = kind.typical;
          cost_of(layer).name = bench_.name(layer);
        }
    }
    std::erase_if(kinds, [](const EquivalentLayers& kind) { return kind.layers.size() == 1; });
    return kinds;
  }

  /// Returns the contended samples. If memory sufficed for one copy only, the samples of that copy
  /// stand for them.
  const LayerSamples& contended_of(const MeasuredLayer& layer) const {
    return benches_.size() > 1 && layer.contended.forward.empty() ? layer.alone : layer.contended;
  }

  template <class CostOf>
  void note_places(EquivalentLayers& kind, const CostOf& cost_of) const {
    for (const int layer : kind.layers) {
      if (!layers_[static_cast<std::size_t>(layer)])
        continue;
      kind.measured.push_back(layer);
      const double first = plan::compute_time(cost_of(kind.measured.front())).value;
      const double own = plan::compute_time(cost_of(layer)).value;
      if (first > 0)
        kind.within = std::max(kind.within, std::abs(own / first - 1));
    }
  }

  plan::LayerCost of_all_places(const EquivalentLayers& kind) const {
    LayerSamples alone, contended;
    for (const int layer : kind.measured) {
      alone.append(layers_[static_cast<std::size_t>(layer)]->alone);
      contended.append(contended_of(*layers_[static_cast<std::size_t>(layer)]));
    }
    plan::LayerCost cost = layers_[static_cast<std::size_t>(kind.measured.front())]->rest;
    set_times(cost, alone, contended);
    return cost;
  }

  /// Sets the costs around the layers. If the section that loads was not measured, loading is
  /// measured alone.
  void set_ends(plan::LayerCosts& costs) const {
    if (load_.empty() || target_load_.empty()) {
      const LoadTimes loads = load_times(bench_);
      costs.load = loads.inputs;
      costs.load_target = loads.targets;
    }
    if (!load_.empty())
      costs.load = {plan::typical_mean(load_)};
    if (!target_load_.empty())
      costs.load_target = {plan::typical_mean(target_load_)};
    costs.drift = plan::drift(whole_);
    costs.measured_over = {measured_over_};
  }

  std::vector<LayerBench*> benches_;
  LayerBench& bench_;
  Cores* cores_;
  const ProfileRequest& request_;
  std::vector<LayerOutline> outlines_;
  std::vector<bool> wanted_;
  Walk walk_;
  std::vector<std::optional<MeasuredLayer>> layers_;  // the loss last
  int number_ = 0, count_ = 0;                        // of the measured sections
  std::vector<double> load_, target_load_;
  std::vector<double> whole_;  // a section's forward and backward alone, divided by the median
  double measured_over_ = 0;
};

}  // namespace

Profiled profile_layers(LayerBench& bench, const ProfileRequest& request) {
  const exec::ChargeTo charge(bench.account());
  return Profile({&bench}, nullptr, request).run();
}

Profiled profile_layers(const std::vector<std::unique_ptr<LayerBench>>& benches, Cores& cores,
                        const ProfileRequest& request) {
  std::vector<LayerBench*> each;
  for (const auto& bench : benches)
    each.push_back(bench.get());
  const exec::ChargeTo charge(each.front()->account());
  return Profile(std::move(each), &cores, request).run();
}

plan::LayerCosts profile(LayerBench& bench, const plan::ProfileSettings& settings,
                         const std::function<void(const Progress&)>& report,
                         const std::atomic<bool>* stop) {
  return profile_layers(bench, {.settings = settings, .report = report, .stop = stop}).costs;
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return "CPU";
}

}  // namespace pipewright::profiler
