#include "pipewright/loop/compare/idle_comparison.hpp"

#include <fmt/format.h>

#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::loop {
namespace {

plan::Json to_json(const plan::IdleByCause& idle) {
  plan::Json json = plan::Json::object();
  for (std::size_t cause = 0; cause < idle.size(); ++cause)
    json[plan::idle_causes()[cause]] = idle[cause].value;
  return json;
}

}  // namespace

IdleComparison compare_idle(const plan::Timeline& predicted, const plan::Timeline& measured) {
  if (predicted.idle.empty() || measured.idle.empty())
    return {};
  return {idle_by_cause(predicted), idle_by_cause(measured)};
}

plan::Json idle_json(const IdleComparison& comparison) {
  plan::Json ranks = plan::Json::array();
  for (std::size_t rank = 0; rank < comparison.predicted.size(); ++rank)
    ranks.push_back({{"predicted", to_json(comparison.predicted[rank])},
                     {"measured", to_json(comparison.measured[rank])}});
  return ranks;
}

std::string idle_line(const IdleComparison& comparison) {
  if (comparison.predicted.empty())
    return "";
  const plan::IdleByCause expected = sum(comparison.predicted), seen = sum(comparison.measured);
  std::string text;
  for (std::size_t cause = 0; cause < expected.size(); ++cause)
    if (expected[cause].value > 0 || seen[cause].value > 0)
      text += fmt::format("{}{} {:.1f} (predicted {:.1f})", text.empty() ? "" : ", ",
                          plan::idle_causes()[cause], 1e3 * seen[cause].value,
                          1e3 * expected[cause].value);
  return fmt::format("idle, all ranks, ms: {}\n", text.empty() ? "none" : text);
}

}  // namespace pipewright::loop
