#include "schedule_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "schedule_figures.hpp"

namespace pipewright::cli {
namespace {

constexpr int table_ranks = 4;
constexpr int table_microbatches = 8;
/// F = I = W = 1 for one microbatch on all stages of a rank.
constexpr double table_work = 3.0 * table_microbatches;

/// What papers say of a schedule: P ranks, M microbatches, V chunks, F, I and W per rank, B = I +
/// W.
struct Facts {
  std::string name;
  int chunks;
  std::string bubble;       // formula; empty where none is known
  double bubble_value;      // at the table's size
  std::string activations;  // of the fullest rank, in microbatches on a whole rank
  double activations_value;
};

const std::vector<Facts>& all_facts() {
  constexpr double p = table_ranks, m = table_microbatches;
  static const std::vector<Facts> facts{
      {"gpipe", 1, "(P-1)(F+B)", (p - 1) * 3, "M", m},
      {"1f1b", 1, "(P-1)(F+B)", (p - 1) * 3, "min(M, P)", p},
      {"interleaved-1f1b", 2, "(P-1)(F+B)/V", (p - 1) * 3 / 2, "P + (P-1)/V", p + (p - 1) / 2},
      {"megatron-interleaved", 2, "(P-1)(F+B)/V", (p - 1) * 3 / 2, "P + (P-1)/V", p + (p - 1) / 2},
      {"looped-bfs", 2, "(P-1)(F+B)/V", (p - 1) * 3 / 2, "M", m},
      {"interleaved-zb", 2, "(P-1)(F+B)/(3V)", (p - 1) / 2, "P", p},
      {"zb-h1", 1, "(P-1)(F+I-W)", p - 1, "P", p},
      {"zb-h2", 1, "(P-1)(F+I-2W) of the span", 0, "2P-1", 2 * p - 1},
      {"zb-auto", 1, "found by search", -1, "by its limit", 0},
      {"zbv", 2, "0 of the span", -1, "P", p},
      {"dualpipev", 2, "(P-1)(F&B+B-3W)/V", (p - 1) * (3 + 2 - 3) / 2, "P + 1/2", p + 0.5},
      {"dualpipe", 1, "(P/2-1)(F&B+B-3W)", (p / 2 - 1) * (3 + 2 - 3), "P+1", p + 1},
      {"chimera", 1, "a fraction (P-2)/(2M+P-2) when F = B", -1, "P", p},
      {"v-half", 2, "about 3P F/V", 3 * p / 2, "(4 floor(P/2) + 4)/4", (4 * 2 + 4) / 4.0},
      {"v-min", 2, "about 4P F/V", 4 * p / 2, "floor((P+4)/3)", 2},
      {"v-zb", 2, "0 of the span", -1, "P", p},
      {"hanayo", 2, "a fraction of at most (2P-2)/(3PW+P-1) at M = P", -1, "at most 3P/2", 1.5 * p},
      {"pipedream", 1, "0 when steady; (P-1)(F+B) at the ends", (p - 1) * 3, "P", p},
      {"pipedream-2bw", 1, "0 when steady; (P-1)(F+B) at the ends", (p - 1) * 3, "P", p},
      {"inference", 1, "(P-1)F", (p - 1), "1", -1},
      {"deepspeed-train", 1, "(P-1)(F+B)", (p - 1) * 3, "min(M, P)", p},
      {"deepspeed-inference", 1, "(P-1)F", (p - 1), "1", -1},
      {"data-parallel", 1, "0", -1, "1", -1},
  };
  return facts;
}

std::string with_value(const std::string& formula, double value) {
  return formula.empty() || value < 0 ? formula : fmt::format("{} = {:g}", formula, value);
}

std::string row(const Facts& facts) {
  plan::ScheduleRequest request;
  request.name = facts.name;
  request.ranks = table_ranks;
  request.microbatches = table_microbatches;
  request.chunks = facts.chunks;
  const double part = 1.0 / facts.chunks;
  request.times = {{part}, {part}, {part}, 0};
  const plan::Schedule schedule = plan::make_schedule(request);
  const plan::Program program = plan::lower(schedule, plan::lowering_of(request));
  const plan::Timeline timeline = timed(program, request.times);
  const bool forward_only = plan::is_forward_only(schedule);
  const double ideal = forward_only ? table_work / 3 : table_work;
  const auto peaks = plan::peak_activations(schedule);
  const auto versions = plan::weight_versions(program);
  const int copies = program.placement.is_bidirectional() && facts.name != "data-parallel" ? 2 : 1;
  return fmt::format(
      "| `{}` | {} | {:g} | {:g} | {} | {:g} | {} | {} |\n", facts.name, facts.chunks,
      timeline.length.value - ideal, plan::longest_span(timeline).value - ideal,
      with_value(facts.bubble, facts.bubble_value),
      *std::max_element(peaks.begin(), peaks.end()) * part,
      facts.activations_value > 0 ? with_value(facts.activations, facts.activations_value)
                                  : facts.activations,
      copies * *std::max_element(versions.begin(), versions.end()));
}

}  // namespace

std::string schedule_table() {
  std::string text = fmt::format(
      "P = {} ranks, M = {} microbatches, F = I = W = 1 for a microbatch on all stages of a rank, "
      "B = "
      "I + W,\nno transfer time.\n\n"
      "| schedule | V | bubble | of the longest span | formula | activations | formula | weights "
      "|\n"
      "|---|---|---|---|---|---|---|---|\n",
      table_ranks, table_microbatches);
  for (const Facts& facts : all_facts())
    text += row(facts);
  return text;
}

}  // namespace pipewright::cli
