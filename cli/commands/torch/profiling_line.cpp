#include "commands/torch/profiling_line.hpp"

#include <memory>

#include "print/console.hpp"

namespace pipewright::cli {

std::function<void(const profiler::Progress&)> profiling_line(const plan::Scenario& scenario,
                                                              plan::Seconds over) {
  const auto line = std::make_shared<ProgressLine>();
  return [line, over, settings = scenario.profile](const profiler::Progress& progress) {
    const std::string section =
        progress.sections > 1
            ? fmt::format("section {} of {}, ", progress.section, progress.sections)
            : "";
    line->show(
        over > plan::Seconds{}
            ? fmt::format("profiling: {}pass {}, {:.0f} of {:.0f} s", section, progress.passes,
                          progress.passed.value, over.value)
            : fmt::format("profiling: {}pass {} of at most {}, spread {:.1f} % (wanted {:.1f} %)",
                          section, progress.passes, settings.most_repeats, 100 * progress.spread,
                          100 * settings.spread));
  };
}

}  // namespace pipewright::cli
