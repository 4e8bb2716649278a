#include "commands/trainer_files.hpp"

#include <fmt/format.h>

#include "pipewright/plan/json/json_document.hpp"
#include "print/console.hpp"

namespace pipewright::cli {

void write_trainer_files(const std::filesystem::path& folder, const plan::Scenario& scenario) {
  for (const std::string& word : models::trainers()) {
    const models::Trainer trainer = models::trainer_of(word);
    const auto lines = unsupported_fields(trainer, scenario);
    if (lines.empty()) {
      plan::write_file(folder / file_name(trainer), trainer_file(trainer, scenario));
      continue;
    }
    say(fmt::format("{} is not written: {}{}", file_name(trainer), lines.front(),
                    lines.size() == 1 ? ""
                                      : fmt::format(", and {} more (export --for {} lists them)",
                                                    lines.size() - 1, word)));
  }
}

}  // namespace pipewright::cli
