#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/schedules.hpp"
#include "sizes.hpp"

namespace pipewright::plan {

void check_sizes(const char* schedule, int stages, int microbatches) {
  if (stages < 1)
    throw InputError(fmt::format("{}: {} stages asked for, the least is 1", schedule, stages));
  if (microbatches < 1)
    throw InputError(
        fmt::format("{}: {} microbatches asked for, the least is 1", schedule, microbatches));
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names{"gpipe", "1f1b"};
  return names;
}

Schedule make_schedule(const std::string& name, int stages, int microbatches) {
  std::string lower_case = name;
  std::transform(name.begin(), name.end(), lower_case.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower_case == "gpipe")
    return make_gpipe(stages, microbatches);
  if (lower_case == "1f1b")
    return make_1f1b(stages, microbatches);
  throw InputError(fmt::format("no schedule is called \"{}\"{} (known: {})", name,
                               did_you_mean(lower_case, schedule_names()),
                               listed(schedule_names())));
}

}  // namespace pipewright::plan
