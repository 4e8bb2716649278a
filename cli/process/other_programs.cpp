#include "process/other_programs.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "pipewright/models/estimates/estimated_costs.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "print/console.hpp"
#include "process/own_words.hpp"
#include "process/program_output.hpp"

namespace pipewright::cli {
namespace {

/// Finds a program next to this one, or in the folder where `cmake --install` puts it. `purpose`
/// says in words what it is needed for.
std::string find_program(const std::string& name, const char* purpose) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto& place : {folder / name, folder / "../libexec/pipewright" / name})
    if (std::filesystem::exists(place))
      return place.string();
  throw plan::InputError(fmt::format("{}, which is not built or installed: there is no {} in {}",
                                     purpose, name, folder.string()));
}

std::string torch_program() {
  return find_program("pipewright-torch",
                      "run, train, save, profile and measuring costs need LibTorch");
}

/// Creates an unnamed file that contains `text`, which a child can open by its descriptor.
int nameless_file(const std::string& text) {
  const int file = memfd_create("scenario", 0);
  if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw_errno("cannot pass the scenario to pipewright-torch");
  return file;
}

plan::LayerCosts measured_costs(const plan::Scenario& scenario) {
  const std::string program = torch_program();
  const int file = nameless_file(to_json(scenario).dump());
  const std::string text = output_of(
      program,
      {"pipewright", "profile", fmt::format("/proc/self/fd/{}", file), "--over", "0", "--json"});
  close(file);
  return plan::layer_costs_from_json(plan::JsonDocument::parse(text, "measured costs"));
}

}  // namespace

int become_torch_program() {
  become(torch_program(), own_words());
  throw_errno("cannot start pipewright-torch");
}

int become_simgrid_program() {
  become(find_program("pipewright-simgrid", "--engine simgrid needs SimGrid"), own_words());
  throw_errno("cannot start pipewright-simgrid");
}

plan::LayerCosts costs_for(const plan::Scenario& scenario, const std::string& file) {
  if (file.empty() && models::has_analytic_costs(scenario)) {
    say(models::estimate_note(scenario));
    return models::estimated_costs(scenario);
  }
  if (file.empty())
    return measured_costs(scenario);
  return plan::layer_costs_from_json(plan::JsonDocument::read(file));
}

}  // namespace pipewright::cli
