#include "pipewright/gui/document/job_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pipewright::gui {
namespace {

int group_of_worker(const trace::JobLayout& layout, int worker, JobGroups groups) {
  return groups == JobGroups::Replicas ? layout.replica_of(worker) : layout.stage_of(worker);
}

/// Returns a heading such as "stage 3: S 1.2323, 2 workers".
std::string group_name(const trace::JobLayout& layout, const trace::StragglerReport* report,
                       int group, JobGroups groups) {
  const bool replicas = groups == JobGroups::Replicas;
  std::string name = fmt::format("{} {}", replicas ? "dp" : "stage", group);
  if (report != nullptr) {
    const auto& slowdowns = replicas ? report->metrics.by_replica : report->metrics.by_stage;
    name += fmt::format(": S {:.4f}", slowdowns[static_cast<std::size_t>(group)].all);
  }
  const int workers = replicas ? layout.stages : layout.replicas;
  return name + fmt::format(", {} worker{}", workers, workers == 1 ? "" : "s");
}

/// Makes the members of each group adjacent. Groups and members keep the order of first occurrence.
std::vector<int> grouped(const std::vector<int>& order, const std::vector<int>& group_of_rank,
                         std::size_t groups) {
  std::vector<std::vector<int>> members(groups);
  std::vector<std::size_t> met;
  for (const int worker : order) {
    const auto group = static_cast<std::size_t>(group_of_rank[static_cast<std::size_t>(worker)]);
    if (members[group].empty())
      met.push_back(group);
    members[group].push_back(worker);
  }
  std::vector<int> all;
  for (const std::size_t group : met)
    all.insert(all.end(), members[group].begin(), members[group].end());
  return all;
}

}  // namespace

std::vector<int> by_rank(const trace::JobLayout& layout) {
  std::vector<int> workers(static_cast<std::size_t>(layout.workers()));
  std::iota(workers.begin(), workers.end(), 0);
  return workers;
}

RowState job_rows(const trace::JobLayout& layout, const trace::StragglerReport* report,
                  JobArrangement arrangement) {
  RowState rows;
  const bool by_slowness = report != nullptr && arrangement.order == JobOrder::SlowestFirst;
  rows.order = by_slowness ? report->workers : by_rank(layout);
  rows.pinned = {layout.workers()};
  if (arrangement.groups == JobGroups::None)
    return rows;
  const int groups = arrangement.groups == JobGroups::Replicas ? layout.replicas : layout.stages;
  for (int group = 0; group < groups; ++group)
    rows.groups.names.push_back(group_name(layout, report, group, arrangement.groups));
  for (int worker = 0; worker < layout.workers(); ++worker)
    rows.groups.of.push_back(group_of_worker(layout, worker, arrangement.groups));
  rows.order = grouped(rows.order, rows.groups.of, rows.groups.names.size());
  return rows;
}

RowNotes job_notes(const trace::StragglerReport& report) {
  RowNotes notes{.title = "S_w", .of = {}};
  for (const double slowdown : report.metrics.by_worker)
    notes.of.push_back(fmt::format("{:.4f}", slowdown));
  return notes;
}

}  // namespace pipewright::gui
