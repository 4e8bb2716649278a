#include "pipewright/loop/record/model_file.hpp"

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::loop {

plan::Model read_model(const std::string& file) {
  const auto document = plan::JsonDocument::read(file);
  const plan::Json& root = document.root();
  if (root.is_object() && root.value("format", "") == "pipewright/scenario/1")
    return model_of(plan::scenario_from_json(document));
  return plan::model_from_json(document);
}

}  // namespace pipewright::loop
