#include "commands/torch/profiling_line.hpp"

#include <memory>

#include "print/console.hpp"

namespace pipewright::cli {

std::function<void(const profiler::Progress&)> profiling_line(const plan::Scenario& scenario,
                                                              plan::Seconds over) {
  const auto line = std::make_shared<ProgressLine>();
  return [line, over, settings = scenario.profile](const profiler::Progress& progress) {
    line->show(
        over > progress.passed
            ? fmt::format("profiling: pass {}, {:.0f} of {:.0f} s", progress.passes,
                          progress.passed.value, over.value)
            : fmt::format("profiling: pass {} of at most {}, spread {:.1f} % (wanted {:.1f} %)",
                          progress.passes, settings.most_repeats, 100 * progress.spread,
                          100 * settings.spread));
  };
}

}  // namespace pipewright::cli
