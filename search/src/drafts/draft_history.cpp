#include "pipewright/search/drafts/draft_history.hpp"

#include <fmt/format.h>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::search {
namespace {

std::string field_in(const std::string& assignment) {
  return assignment.substr(0, assignment.find('='));
}

/// Returns a field's value as the scenario's file has it; link.latency and link.bandwidth are those
/// within a node. Empty if there is no such field.
std::string value_of(const plan::Scenario& scenario, std::string field) {
  if (field == "link.latency")
    field = "cluster.within_node.latency_s";
  if (field == "link.bandwidth")
    field = "cluster.within_node.bandwidth_per_s";
  const plan::Json json = to_json(scenario);
  const plan::Json* at = &json;
  for (std::size_t begin = 0; begin <= field.size();) {
    const std::size_t end = std::min(field.find('.', begin), field.size());
    const std::string key = field.substr(begin, end - begin);
    if (!at->is_object() || !at->contains(key))
      return "";
    at = &at->at(key);
    begin = end + 1;
  }
  return at->is_string() ? at->get<std::string>() : at->dump();
}

}  // namespace

DraftHistory::DraftHistory(Draft first) { steps_.push_back({std::move(first), "", "", ""}); }

const std::string* DraftHistory::origin(const std::string& slider) const {
  const Step& last = steps_[at_];
  const bool continues = !settled_ && at_ > 0 && !slider.empty() && last.slider == slider;
  return continues ? &last.from : nullptr;
}

const Draft& DraftHistory::push(Draft draft, std::string text, std::string slider,
                                std::string from) {
  const bool continues = origin(slider) != nullptr;
  if (!continues && draft == now())
    return now();
  steps_.resize(at_ + 1);
  if (continues)
    steps_.pop_back();
  settled_ = false;
  if (continues && draft == steps_.back().draft)
    settled_ = true;  // back at the original value: there is no step
  else
    steps_.push_back({std::move(draft), std::move(text), std::move(slider), std::move(from)});
  at_ = steps_.size() - 1;
  return now();
}

const Draft& DraftHistory::set(const std::string& assignment) {
  const std::string field = field_in(assignment);
  Draft next = changed(now(), assignment);
  const std::string* begun = origin(field);
  std::string from = begun != nullptr ? *begun : value_of(now().scenario, field);
  std::string text = fmt::format("{} from {} to {}", field, from, value_of(next.scenario, field));
  return push(std::move(next), std::move(text), field, std::move(from));
}

const Draft& DraftHistory::move_boundary(const std::vector<int>& boundaries, int boundary,
                                         int layer) {
  Draft next = with_boundary(now(), boundaries, boundary, layer);
  const std::string slider = fmt::format("boundary {}", boundary);
  const std::string* begun = origin(slider);
  std::string from =
      begun != nullptr ? *begun : fmt::format("{}", boundaries[static_cast<std::size_t>(boundary)]);
  std::string text = fmt::format("{} from layer {} to {}", slider, from, layer);
  return push(std::move(next), std::move(text), slider, std::move(from));
}

const Draft& DraftHistory::replace(Draft draft, std::string text, const std::string& slider) {
  return push(std::move(draft), std::move(text), slider, "");
}

void DraftHistory::settle() { settled_ = true; }

std::string DraftHistory::undo_text() const { return can_undo() ? steps_[at_].text : ""; }

std::string DraftHistory::redo_text() const { return can_redo() ? steps_[at_ + 1].text : ""; }

const Draft& DraftHistory::undo() {
  settled_ = true;
  at_ -= can_undo() ? 1 : 0;
  return now();
}

const Draft& DraftHistory::redo() {
  settled_ = true;
  at_ += can_redo() ? 1 : 0;
  return now();
}

}  // namespace pipewright::search
