#include "gui/support/opened_window.hpp"

#include <fstream>

namespace pipewright::test {

void PanelBench::train(const std::filesystem::path& folder, int steps) {
  const auto program = folder / "training.sh";
  std::ofstream script(program);
  script << "#!/bin/sh\n"  // run SCENARIO --out FOLDER
         << "mkdir -p \"$4\"\n";
  for (int step = 0; step < steps; ++step)
    script << "echo '" << to_line(loop::StepLine{step, steps, 4.0 - step, 0.5, 2048, "tokens"})
           << "' >> \"$4/steps.jsonl\"\n";
  script << "echo the last words\n";
  script.close();
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  runs.set_program(QString::fromStdString(program.string()));
  runs.start({gui::RunRequest::What::Run, folder / "scenario.json", folder / "run"});
  REQUIRE(QTest::qWaitFor([this] { return runs.phase() == gui::RunControl::Phase::Ended; },
                          patience_ms));
}

}  // namespace pipewright::test
