#include <iostream>
#include <pipewright/draw/svg.hpp>
#include <pipewright/draw/timeline.hpp>
#include <pipewright/loop/predict/schedule_figures.hpp>
#include <pipewright/plan/generators/generators.hpp>
#include <pipewright/plan/lower/lower.hpp>
#include <pipewright/sim/simgrid/simgrid.hpp>

using namespace pipewright;

int main() {
  const plan::Schedule schedule = plan::make_1f1b(2, 3);
  std::cout << to_string(schedule);
  const plan::Timeline timeline = loop::timed(plan::lower(schedule), {});
  std::cout << draw::to_svg(draw::timeline_scene({timeline}, "1f1b")).size() << " bytes of SVG\n";
  if (!sim::built_with_simgrid())
    return 0;
  sim::StepCosts costs;
  costs.stages.resize(2);
  costs.stages[0].forward = costs.stages[1].forward = {1};
  std::cout << sim::simulate_on_simgrid(sim::Structure(plan::lower(schedule)), costs).iteration
            << " s\n";
}
