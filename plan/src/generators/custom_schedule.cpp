#include "custom_schedule.hpp"

#include <fmt/format.h>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/schedules/validate_schedule.hpp"

namespace pipewright::plan {

ScheduleDescriptor custom_schedule(Schedule order, std::string name) {
  ScheduleDescriptor own;
  own.name = std::move(name);
  own.chunks = Chunks::Any;
  own.is_forward_only = is_forward_only(order);
  own.only = FixedSizes{.ranks = static_cast<int>(order.ranks.size()),
                        .microbatches = order.microbatches,
                        .stages = stage_count(order)};
  own.make = [order = std::move(order)](const ScheduleRequest&) -> GeneratedSchedule {
    return {order};
  };
  return own;
}

void require_runnable(const Schedule& order) {
  for (std::size_t rank = 0; rank < order.ranks.size(); ++rank)
    if (order.ranks[rank].empty())
      throw InputError(fmt::format(
          "rank {} has no action: an empty row is also a rank, and each needs a stage", rank));
  validate(order);
}

void require_sound(const std::string& name, const std::function<void()>& prove) {
  try {
    prove();
  } catch (const MalformedFile&) {
    throw;
  } catch (const InputError& error) {
    throw InputError(fmt::format("{} is not sound:\n{}", name, error.what()));
  }
}

}  // namespace pipewright::plan
