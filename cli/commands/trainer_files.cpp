#include "commands/trainer_files.hpp"

#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::cli {

void write_trainer_files(const std::filesystem::path& folder, const plan::Scenario& scenario) {
  for (const std::string& word : models::trainers())
    if (const auto text = find_trainer_file(models::trainer_of(word), scenario))
      plan::write_file(folder / file_name(models::trainer_of(word)), *text);
}

}  // namespace pipewright::cli
