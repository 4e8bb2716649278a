#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "catalog.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::plan {

const std::vector<ScheduleDescriptor>& schedules() {
#define CALL(name) schedule::name(),
  static const std::vector<ScheduleDescriptor> all{PIPEWRIGHT_SCHEDULES(CALL)};
#undef CALL
  return all;
}

const std::vector<std::string>& schedule_names() {
  static const auto names = schedule_names([](const ScheduleDescriptor&) { return true; });
  return names;
}

const ScheduleDescriptor& find_schedule(const std::string& name) {
  std::string wanted = name;
  std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const ScheduleDescriptor& entry : schedules())
    if (entry.name == wanted)
      return entry;
  throw InputError(fmt::format("no schedule is called \"{}\"{} (known: {})", name,
                               did_you_mean(wanted, schedule_names()), listed(schedule_names())));
}

const ScheduleDescriptor& descriptor_of(const ScheduleChoice& schedule) {
  return schedule.own ? *schedule.own : find_schedule(schedule.name);
}

const ScheduleDescriptor& descriptor_of(const ScheduleRequest& request) {
  return request.own ? *request.own : find_schedule(request.name);
}

const ScheduleDescriptor& default_schedule(int chunks, int group) {
  const Chunks kind = chunks == 1 ? Chunks::One : Chunks::Any;
  return *std::ranges::find_if(schedules(), [&](const ScheduleDescriptor& entry) {
    return entry.runs_in_megatron && entry.chunks == kind &&
           entry.takes_group == (chunks > 1 && group > 0);
  });
}

const std::string& schedule_name(const Cut& cut) {
  return cut.schedule.empty() ? default_schedule(cut.chunks, cut.group).name : cut.schedule;
}

std::vector<std::string> schedule_names(
    const std::function<bool(const ScheduleDescriptor&)>& is_one) {
  std::vector<std::string> names;
  for (const ScheduleDescriptor& entry : schedules())
    if (is_one(entry))
      names.push_back(entry.name);
  return names;
}

std::string listed_schedules(const std::function<bool(const ScheduleDescriptor&)>& is_one) {
  return listed(schedule_names(is_one));
}

const std::vector<int>& usual_chunks(Chunks chunks) {
  static const std::vector<int> one{1}, two{2}, several{2, 4};
  switch (chunks) {
    case Chunks::One:
      return one;
    case Chunks::Two:
      return two;
    case Chunks::Even:
    case Chunks::Any:
      break;
  }
  return several;
}

}  // namespace pipewright::plan
