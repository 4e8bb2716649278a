#include "pipewright/profiler/activity/work_report.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "pipewright/plan/statistics.hpp"

namespace pipewright::profiler {
namespace {

using PartKey = std::pair<int, plan::InstructionKind>;
using Kernels = std::map<std::string, KernelSum>;

/// The samples of one part, with one entry for each run.
struct PartSamples {
  std::vector<double> device, launch, waiting, host;
  int count = 0;
  Kernels kernels;

  void add(const WorkTime& time) {
    device.push_back(time.device.value);
    launch.push_back(time.launch.value);
    waiting.push_back(time.waiting.value);
    host.push_back(time.host.value);
    count = std::max(count, time.count);
  }
  WorkTime typical() const {
    return {{plan::typical_mean(device)},
            {plan::typical_mean(launch)},
            {plan::typical_mean(waiting)},
            {plan::typical_mean(host)},
            count};
  }
};

void add_kernel(Kernels& kernels, const std::string& name, const GpuRecord& record,
                plan::Seconds time) {
  KernelSum& sum = kernels[name];
  sum.count += 1;
  sum.time += time;
  if (record.bytes >= 0)
    sum.moved = sum.moved.value_or(plan::Bytes{}) + plan::Bytes{record.bytes};
}

std::vector<KernelSum> longest_first(const Kernels& kernels, int times) {
  std::vector<KernelSum> sums;
  for (const auto& [name, kernel] : kernels) {
    KernelSum& sum = sums.emplace_back(kernel);
    sum.name = name;
    sum.count /= times;
    sum.time = sum.time * (1.0 / times);
    if (sum.moved)
      sum.moved = plan::Bytes{sum.moved->value / times};
  }
  std::stable_sort(sums.begin(), sums.end(),
                   [](const KernelSum& a, const KernelSum& b) { return a.time > b.time; });
  return sums;
}

using Strays = std::map<std::pair<std::string, std::string>, std::uint64_t>;  // by name and call

void add_strays(Strays& strays, const Activity& activity, const Attribution& attribution) {
  for (std::size_t r = 0; r < activity.records.size(); ++r) {
    const GpuRecord& record = activity.records[r];
    const int call = attribution.call_of[r];
    const bool is_claimed = attribution.range_of[r] != Attribution::none;
    const bool call_was_lost = call == Attribution::none && record.correlation != 0;
    if (!is_work(record.kind) || record.end == 0 || (is_claimed && !call_was_lost))
      continue;
    const std::string asked =
        call == Attribution::none
            ? ""
            : activity.names.at(activity.records[static_cast<std::size_t>(call)].name);
    ++strays[{activity.names.at(record.name), asked}];
  }
}

std::vector<StrayWork> most_first(const Strays& strays) {
  std::vector<StrayWork> all;
  for (const auto& [key, count] : strays)
    all.push_back({key.first, key.second, count});
  std::stable_sort(all.begin(), all.end(),
                   [](const StrayWork& a, const StrayWork& b) { return a.count > b.count; });
  return all;
}

void add_lost(LostRecords& lost, const Activity& activity, const Attribution& attribution) {
  lost.dropped += activity.dropped;
  lost.unread += activity.unread;
  lost.late_buffers += activity.late_buffers;
  lost.missing_buffers += activity.missing_buffers;
  lost.unclaimed += attribution.unclaimed;
  lost.without_call += attribution.without_call;
  lost.without_times += attribution.without_times;
}

}  // namespace

WorkReport work_report(const std::vector<RecordedPass>& passes) {
  WorkReport report;
  std::map<PartKey, PartSamples> parts;
  Kernels all;
  Strays strays;
  for (const auto& [activity, ranges] : passes) {
    const Attribution attribution = attribute(activity, ranges);
    add_lost(report.lost, activity, attribution);
    add_strays(strays, activity, attribution);
    const auto times = work_times(activity, attribution, ranges);
    for (std::size_t range = 0; range < ranges.size(); ++range)
      parts[{ranges[range].layer, ranges[range].instruction.kind}].add(times[range]);
    const auto own = own_times(activity);
    for (std::size_t r = 0; r < activity.records.size(); ++r) {
      if (attribution.range_of[r] == Attribution::none)
        continue;
      const GpuRecord& record = activity.records[r];
      const WorkRange& range = ranges[static_cast<std::size_t>(attribution.range_of[r])];
      const std::string& name = activity.names.at(record.name);
      add_kernel(all, name, record, own[r]);
      add_kernel(parts[{range.layer, range.instruction.kind}].kernels, name, record, own[r]);
    }
  }
  for (const auto& [key, samples] : parts) {
    const int times = static_cast<int>(samples.device.size());
    report.parts.push_back(
        {key.first, key.second, times, samples.typical(), longest_first(samples.kernels, times)});
  }
  report.kernels = longest_first(all, std::max<int>(1, static_cast<int>(passes.size())));
  report.lost.strays = most_first(strays);
  return report;
}

std::vector<RankWork> work_by_rank(const RecordedPass& pass) {
  const auto times = work_times(pass.activity, attribute(pass.activity, pass.ranges), pass.ranges);
  std::map<PartKey, RankWork> sums;
  for (std::size_t range = 0; range < pass.ranges.size(); ++range) {
    const PartKey key{pass.ranges[range].rank, pass.ranges[range].instruction.kind};
    RankWork& sum = sums[key];
    sum.rank = key.first;
    sum.kind = key.second;
    ++sum.times;
    sum.time.device += times[range].device;
    sum.time.launch += times[range].launch;
    sum.time.waiting += times[range].waiting;
    sum.time.host += times[range].host;
    sum.time.count += times[range].count;
  }
  std::vector<RankWork> all;
  for (const auto& [key, sum] : sums)
    all.push_back(sum);
  return all;
}

plan::Json to_json(const std::vector<RankWork>& ranks) {
  plan::Json list = plan::Json::array();
  for (const RankWork& work : ranks)
    list.push_back({{"rank", work.rank},
                    {"actions", plan::traits_of(work.kind).word},
                    {"times", work.times},
                    {"kernels", work.time.count},
                    {"device_s", work.time.device.value},
                    {"launch_s", work.time.launch.value},
                    {"waiting_s", work.time.waiting.value},
                    {"host_s", work.time.host.value}});
  return list;
}

namespace {

plan::Json kernels_json(const std::vector<KernelSum>& kernels) {
  plan::Json list = plan::Json::array();
  for (const KernelSum& kernel : kernels)
    list.push_back(
        {{"name", kernel.name},
         {"count", kernel.count},
         {"time_s", kernel.time.value},
         {"moved_bytes", kernel.moved ? plan::Json(kernel.moved->value) : plan::Json()}});
  return list;
}

}  // namespace

plan::Json to_json(const WorkReport& report, const std::function<std::string(int layer)>& name_of) {
  plan::Json parts = plan::Json::array();
  for (const WorkPart& part : report.parts)
    parts.push_back({{"layer", name_of(part.layer)},
                     {"part", plan::traits_of(part.kind).word},
                     {"times", part.times},
                     {"device_s", part.time.device.value},
                     {"launch_s", part.time.launch.value},
                     {"waiting_s", part.time.waiting.value},
                     {"host_s", part.time.host.value},
                     {"launch_bound", report.on_device && part.time.is_launch_bound()},
                     {"kernels", kernels_json(part.kernels)}});
  const LostRecords& lost = report.lost;
  plan::Json strays = plan::Json::array();
  for (const StrayWork& stray : lost.strays)
    strays.push_back({{"name", stray.name},
                      {"call", stray.call.empty() ? plan::Json() : plan::Json(stray.call)},
                      {"count", stray.count}});
  return {{"source", report.source},
          {"on_device", report.on_device},
          {"parts", std::move(parts)},
          {"kernels", kernels_json(report.kernels)},
          {"lost",
           {{"dropped", lost.dropped},
            {"unread_bytes", lost.unread},
            {"between_actions", lost.unclaimed},
            {"without_call", lost.without_call},
            {"without_times", lost.without_times},
            {"late_buffers", lost.late_buffers},
            {"missing_buffers", lost.missing_buffers},
            {"unattributed", std::move(strays)}}},
          {"overhead", report.overhead ? plan::Json(*report.overhead) : plan::Json()}};
}

}  // namespace pipewright::profiler
