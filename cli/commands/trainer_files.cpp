#include "commands/trainer_files.hpp"

#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::cli {

void write_trainer_files(const std::filesystem::path& folder, const plan::Scenario& scenario) {
  for (const std::string& word : plan::trainers())
    if (const plan::Trainer trainer = plan::trainer_of(word); untold(trainer, scenario).empty())
      plan::write_file(folder / file_name(trainer), trainer_file(trainer, scenario));
}

}  // namespace pipewright::cli
