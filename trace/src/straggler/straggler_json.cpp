#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "pipewright/trace/straggler/straggler_report.hpp"

namespace pipewright::trace {
namespace {

std::string key_of(const JobLayout& layout, int worker) {
  return fmt::format("dp {} stage {}", layout.replica_of(worker), layout.stage_of(worker));
}

plan::Json json_of(const JobLayout& layout) {
  return {{"dp_size", layout.replicas},
          {"pp_size", layout.stages},
          {"vpp_size", layout.chunks},
          {"ranks_per_worker", layout.ranks_per_worker},
          {"world_size", layout.world_size()}};
}

plan::Json json_of(const std::map<std::string, Slowdown>& by_operation) {
  plan::Json json = plan::Json::object();
  for (const auto& [operation, slowdown] : by_operation)
    json[operation] = slowdown.all;
  return json;
}

plan::Json json_of(const std::vector<Slowdown>& by_place) {
  plan::Json json = plan::Json::object();
  for (std::size_t at = 0; at < by_place.size(); ++at)
    json[std::to_string(at)] = by_place[at].all;
  return json;
}

plan::Json json_of(const SavedTime& saving) {
  return {{"seconds", saving.seconds}, {"percent", 100 * saving.part}};
}

class ReportJson {
 public:
  explicit ReportJson(const StragglerReport& report)
      : report_(report), layout_(report.steps.plan.layout), metrics_(report.metrics) {}

  plan::Json make() {
    add_job();
    add_times();
    add_delays();
    add_slowdowns();
    add_shares();
    add_workers();
    add_remedies();
    add_steps();
    return std::move(json_);
  }

 private:
  const JobSteps& steps() const { return report_.steps; }

  void add_job() {
    json_["reading"] = reading_of(report_);
    json_["layout"] = json_of(layout_);
    json_["schedule"] = report_.schedule;
    json_["microbatches"] = steps().plan.schedule.microbatches;
    json_["events"] = report_.events;
    json_["events_left_out"] = report_.events_left_out;
    json_["negative_durations"] = {{"count", report_.negative_events},
                                   {"least_s", report_.least_event_s}};
    json_["steps"] = steps().numbers;
    json_["steps_left_out"] = plan::Json::array();
    for (const OmittedStep& step : steps().left_out)
      json_["steps_left_out"].push_back({{"step", step.number}, {"why", step.why}});
  }

  void add_times() {
    const double measured = mean_of(steps().measured), replayed = mean_of(metrics_.replayed_s);
    json_["mean_step_s"] = {{"measured", measured},
                            {"replayed", replayed},
                            {"explained", mean_of(report_.delays.explained_s)},
                            {"ideal", mean_of(metrics_.ideal_step_s)}};
    json_["replay"] = {{"measured_over_replayed", replayed > 0 ? measured / replayed : 1}};
    json_["ideal_s"] = plan::Json::object();
    for (const JobNode& node : steps().graph.nodes)
      json_["ideal_s"][std::string(name_of(node.operation))] =
          metrics_.ideal_s[index_of(node.operation)];
  }

  void add_delays() {
    const LaunchDelays& delays = report_.delays;
    json_["replay_error_percent"] = 100 * delays.explained_error;
    json_["replay_error_percent_learnt"] =
        delays.kept_error < 0 ? plan::Json() : plan::Json(100 * delays.kept_error);
    json_["replay_error_percent_plain"] = 100 * delays.plain_error;
    const double unexplained = mean_of(steps().measured) - mean_of(metrics_.replayed_s);
    plan::Json kinds = plan::Json::array();
    for (const DelayKind& kind : delays.kinds)
      kinds.push_back({{"before", kind.before},
                       {"count", kind.count},
                       {"mean_s", kind.mean_s},
                       {"longest_s", kind.longest_s},
                       {"explains_s", kind.explains_s},
                       {"explains_percent", 100 * part_of_step(kind.explains_s)}});
    json_["launch_delays"] = {{"unexplained_by_replay_s", unexplained},
                              {"joined_transfers", delays.joined},
                              {"kinds", std::move(kinds)}};
  }

  double part_of_step(double seconds) const {
    const double replayed = mean_of(metrics_.replayed_s);
    return replayed > 0 ? seconds / replayed : 0;
  }

  void add_slowdowns() {
    json_["S"] = metrics_.slowdown.all;
    // Under the names of the published results and under those of the paper.
    add_both("S_by_operation", "S_t", json_of(metrics_.by_operation));
    add_both("S_by_dp_rank", "S_dp", json_of(metrics_.by_replica));
    add_both("S_by_stage", "S_stage", json_of(metrics_.by_stage));
    plan::Json workers = plan::Json::object();
    for (const int worker : metrics_.workers)
      workers[key_of(layout_, worker)] = metrics_.by_worker[static_cast<std::size_t>(worker)];
    add_both("S_by_worker", "S_w", std::move(workers));
  }

  void add_both(const char* published, const char* paper, plan::Json value) {
    json_[published] = value;
    json_[paper] = std::move(value);
  }

  void add_shares() {
    const ExplainedShare& few = metrics_.workers_explain;
    const ExplainedShare& last = metrics_.last_stage_explains;
    json_["M_W"] = few.share;
    json_["M_W_step_s"] = {{"without_slowest_workers", few.without_s},
                           {"ideal_with_slowest_workers", few.with_s}};
    json_["M_W_added"] = few.added;
    json_["M_S"] = last.share;
    json_["M_S_step_s"] = {{"without_last_stage", last.without_s},
                           {"ideal_with_last_stage", last.with_s}};
    json_["M_S_added"] = last.added;
    json_["microbatches_spread"] = report_.lengths.spread;
    json_["forward_backward_correlation"] = report_.lengths.correlation;
  }

  /// Slowest first.
  void add_workers() {
    json_["slowest_workers"] = metrics_.slowest_workers;
    json_["workers"] = plan::Json::array();
    for (const int worker : report_.workers) {
      const auto at = static_cast<std::size_t>(worker);
      json_["workers"].push_back({{"dp", layout_.replica_of(worker)},
                                  {"stage", layout_.stage_of(worker)},
                                  {"rank", layout_.global_rank(worker)},
                                  {"S_w", metrics_.by_worker[at]},
                                  {"compute_s", report_.compute_s[at]},
                                  {"over_peers", report_.over_peers[at]},
                                  {"own_slowness", report_.own_slowness[at]}});
    }
  }

  void add_remedies() {
    const Remedies& remedies = report_.remedies;
    json_["as_it_is"] = {{"step_s", remedies.step_s}, {"activations", remedies.activations}};
    json_["remedies"] = plan::Json::array();
    for (const Remedy& own : remedies.all) {
      plan::Json remedy{{"kind", own.kind},
                        {"change", own.change},
                        {"step_s", own.step_s},
                        {"saves_s", own.saves.seconds},
                        {"saves_percent", 100 * own.saves.part},
                        {"saves_on_learnt", json_of(own.on_learnt)},
                        {"saves_on_kept", nullptr},
                        {"activations", own.activations},
                        {"supposed", own.supposed}};
      if (remedies.has_kept)
        remedy["saves_on_kept"] = json_of(own.on_kept);
      json_["remedies"].push_back(std::move(remedy));
    }
  }

  void add_steps() {
    plan::Json by_step = plan::Json::object(), by_operation = by_step, by_stage = by_step;
    for (std::size_t at = 0; at < steps().numbers.size(); ++at) {
      const std::string number = std::to_string(steps().numbers[at]);
      by_step[number] = {{"measured_s", steps().measured[at]},
                         {"replayed_s", metrics_.replayed_s[at]},
                         {"explained_s", report_.delays.explained_s[at]},
                         {"ideal_s", metrics_.ideal_step_s[at]},
                         {"S", metrics_.slowdown.by_step[at]}};
      for (const auto& [operation, slowdown] : metrics_.by_operation)
        by_operation[number][operation] = slowdown.by_step[at];
      for (std::size_t stage = 0; stage < metrics_.by_stage.size(); ++stage)
        by_stage[number][std::to_string(stage)] = metrics_.by_stage[stage].by_step[at];
    }
    json_["by_step"] = std::move(by_step);
    json_["S_by_operation_by_step"] = std::move(by_operation);
    json_["S_by_stage_by_step"] = std::move(by_stage);
  }

  const StragglerReport& report_;
  const JobLayout& layout_;
  const StragglerMetrics& metrics_;
  plan::Json json_ = plan::Json::object();
};

}  // namespace

plan::Json to_json(const StragglerReport& report) {
  plan::Json json = ReportJson(report).make();
  if (report.days)
    json["draws"] = to_json(*report.days);
  return json;
}

plan::Json document_of(const StragglerReport& report) {
  return {{"file", report.file}, {"straggler", to_json(report)}};
}

}  // namespace pipewright::trace
