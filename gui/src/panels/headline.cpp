#include "pipewright/gui/panels/headline.hpp"

#include <fmt/format.h>

#include <QStringList>
#include <algorithm>
#include <cmath>
#include <optional>

#include "pipewright/gui/look/words.hpp"
#include "pipewright/models/estimates/estimated_costs.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/trace/straggler/shown_remedies.hpp"

namespace pipewright::gui {
namespace {

using Tone = Headline::Tone;

/// The figures that a timeline itself contains; empty if it does not.
struct TableFigures {
  std::optional<double> iteration_s;
  std::optional<double> bubble_s;  // idle compute time per rank, on average
  std::optional<double> peak;      // bytes
};

TableFigures figures_of(const PaintedTable& painted) {
  const plan::EventTable& table = painted.table();
  TableFigures figures;
  if (const auto iteration = plan::iteration_of(table, painted.facts()))
    figures.iteration_s = iteration->value;
  if (painted.facts().is_iteration) {
    double idle = 0;
    for (int rank = 0; rank < table.ranks; ++rank)
      idle += std::max(0.0, table.length.value - painted.busy(rank, 0, painted.length()));
    figures.bubble_s = idle / std::max(1, table.ranks);
  }
  for (const plan::EventTable::Memory& sample : table.memory)
    figures.peak = std::max(figures.peak.value_or(0), static_cast<double>(sample.bytes));
  return figures;
}

QString rate_words(double units_per_s) {
  struct Scale {
    double size;
    const char* name;
  };
  for (const Scale& scale : {Scale{1e9, " G"}, Scale{1e6, " M"}, Scale{1e4, " k"}})
    if (units_per_s >= scale.size) {
      const double size = scale.size == 1e4 ? 1e3 : scale.size;
      return QString::fromStdString(fmt::format("{:.4g}", units_per_s / size)) + scale.name;
    }
  return QString::fromStdString(fmt::format("{:.4g}", units_per_s));
}

Tone tone_of(double before, double after, bool less_is_better) {
  if (std::abs(after - before) <= 5e-4 * std::abs(before))
    return Tone::Neutral;
  return (after < before) == less_is_better ? Tone::Better : Tone::Worse;
}

double part(double of, double whole) { return whole > 0 ? of / whole : 0; }

void add_plan_figures(const Workspace& workspace, Headline& headline) {
  const search::Answer& answer = *workspace.answer();
  const search::Figures& now = answer.figures;
  const search::Answer* held = workspace.changed() ? workspace.baseline() : nullptr;
  const auto add = [&](QString caption, QString value, QString beside, double figure,
                       double (*of)(const search::Figures&), QString (*words)(double),
                       bool less_is_better, QString help) {
    Headline::Figure shown{std::move(caption), std::move(value), std::move(beside), "",
                           Tone::Neutral,      std::move(help)};
    if (held != nullptr) {
      const double before = of(held->figures);
      shown.note = change_words(before, figure, words);
      shown.tone = shown.note.isEmpty() ? Tone::Neutral : tone_of(before, figure, less_is_better);
      if (shown.note.isEmpty())
        shown.note = "as before";
    }
    headline.figures.push_back(std::move(shown));
  };
  const bool is_bound = !answer.bound.empty();
  add(
      "Iteration", (is_bound ? "≥ " : "") + time_words(now.iteration_s), "", now.iteration_s,
      [](const search::Figures& of) { return of.iteration_s; }, time_words, true,
      is_bound ? "A lower bound: " + QString::fromStdString(answer.bound)
               : QString("From the first load to the last optimizer step."));
  add(
      "Bubble", time_words(now.bubble_s), percent_words(part(now.bubble_s, now.iteration_s)),
      now.bubble_s, [](const search::Figures& of) { return of.bubble_s; }, time_words, true,
      "The time in which a rank computes nothing, averaged over the ranks.");
  add(
      "Peak memory", byte_words(static_cast<double>(now.peak.value)),
      answer.cap.value > 0 ? "of " + byte_words(static_cast<double>(answer.cap.value)) : QString(),
      static_cast<double>(now.peak.value),
      [](const search::Figures& of) { return static_cast<double>(of.peak.value); }, byte_words,
      true, "On the rank with the highest peak.");
  add(
      "Throughput", rate_words(now.units_per_s), QString::fromStdString(now.unit) + "/s",
      now.units_per_s, [](const search::Figures& of) { return of.units_per_s; }, rate_words, false,
      answer.throughput.mfu > 0 ? "Over all replicas. Model FLOPs over the devices' peak (MFU): " +
                                      percent_words(answer.throughput.mfu)
                                : QString("Over all replicas."));
  if (answer.over)
    headline.figures[2].tone = Tone::Worse;
}

/// Adds a note such as "as predicted" or "predicted 12.10 ms (+2.0 %)".
void add_prediction(Headline::Figure& shown, double figure, double predicted,
                    QString (*words)(double)) {
  const double change = 100 * (figure / predicted - 1);
  shown.note = std::abs(change) < 0.05 ? QString("as predicted")
                                       : QString("predicted %1 (%2%3 %)")
                                             .arg(words(predicted), change > 0 ? "+" : "−",
                                                  QString::number(std::abs(change), 'f', 1));
  // A prediction may be wrong in either direction, so there is no "better", only close and not
  // close.
  if (std::abs(figure / predicted - 1) > 0.1)
    shown.tone = Tone::Worse;
}

/// Adds the length of a recording whose steps are only a part of it or are unknown.
void add_trace_figures(const PaintedTable& painted, Headline& headline) {
  const auto& steps = painted.facts().steps;
  if (!steps.empty() && !headline.figures.empty()) {
    const auto [shortest, longest] =
        std::minmax_element(steps.begin(), steps.end(),
                            [](const auto& a, const auto& b) { return a.length() < b.length(); });
    Headline::Figure& iteration = headline.figures.front();
    iteration.beside = steps.size() > 1 ? "median of " + counted(steps.size(), "step", "steps")
                                        : QString("the one step that is marked");
    iteration.help = "Over the steps that the trace marks.";
    if (iteration.note.isEmpty() && steps.size() > 1)
      iteration.note =
          time_words(shortest->length().value) + " to " + time_words(longest->length().value);
  }
  headline.figures.push_back({"Recorded", time_words(painted.length()), "", "", Tone::Neutral,
                              "From the first event of the trace to its last."});
}

/// Adds a job's slowdown, its worst worker and its best remedy before the other figures.
void add_stragglers(const trace::StragglerReport& report, Headline& headline) {
  const trace::StragglerMetrics& metrics = report.metrics;
  const trace::JobLayout& layout = report.steps.plan.layout;
  const auto digits = [](double figure) { return QString::number(figure, 'f', 4); };
  const int worst = report.workers.front();
  std::vector<Headline::Figure> figures{
      {"Slowdown", digits(metrics.slowdown.all), "",
       QString("M_W %1, M_S %2")
           .arg(digits(metrics.workers_explain.share), digits(metrics.last_stage_explains.share)),
       Tone::Neutral,
       "S is the step time divided by that with ideal durations of all operations. M_W is the "
       "part of it that the slowest workers explain, M_S that of the last stage."},
      {"Slowest worker",
       QString("dp %1, stage %2").arg(layout.replica_of(worst)).arg(layout.stage_of(worst)), "",
       "S_w " + digits(metrics.by_worker[static_cast<std::size_t>(worst)]), Tone::Neutral,
       "Its row is the first. S_w is the smaller of the slowdowns of its stage and its replica."}};
  if (const auto told = trace::shown_remedies(report.remedies); !told.empty())
    figures.push_back({"Best remedy",
                       QString::number(100 * told.front()->saves.part, 'f', 2) + " %", "",
                       QString::fromStdString(told.front()->kind), Tone::Neutral,
                       QString::fromStdString(told.front()->change)});
  // The step time comes first.
  headline.figures.insert(headline.figures.begin() + (headline.figures.size() > 1 ? 1 : 0),
                          figures.begin(), figures.end());
}

/// Returns "2 replicas × 4 stages", "4 ranks" or "12 rows".
QString rows_words(const Workspace& workspace) {
  const PaintedTable& front = *workspace.front();
  if (const trace::JobTrace* const job = workspace.job())
    return QString("%1 × %2").arg(counted(job->layout.replicas, "replica", "replicas"),
                                  counted(job->layout.stages, "stage", "stages"));
  return front.facts().is_iteration ? counted(front.table().ranks, "rank", "ranks")
                                    : counted(front.table().ranks, "row", "rows");
}

void add_run_figures(const Workspace& workspace, Headline& headline) {
  const PaintedTable& front = *workspace.front();
  const TableFigures now = figures_of(front);
  TableFigures expected;
  if (workspace.document().measured && workspace.document().predicted && workspace.ghost())
    expected = figures_of(*workspace.ghost());
  const auto add = [&](QString caption, std::optional<double> figure,
                       std::optional<double> predicted, QString beside, QString (*words)(double),
                       QString help) {
    if (!figure)
      return;
    Headline::Figure shown{std::move(caption), words(*figure), std::move(beside), "",
                           Tone::Neutral,      std::move(help)};
    if (predicted && *predicted > 0)
      add_prediction(shown, *figure, *predicted, words);
    headline.figures.push_back(std::move(shown));
  };
  add("Iteration", now.iteration_s, expected.iteration_s, "", time_words,
      "For the step that is shown.");
  add("Bubble", now.bubble_s, expected.bubble_s,
      percent_words(part(now.bubble_s.value_or(0), now.iteration_s.value_or(0))), time_words,
      "The time in which a rank computes nothing, averaged over the ranks.");
  if (!front.facts().is_iteration)
    add_trace_figures(front, headline);
  if (workspace.stragglers())
    add_stragglers(*workspace.stragglers(), headline);
  add("Peak memory", now.peak, expected.peak, "", byte_words, "On the rank with the highest peak.");
  const auto& run = workspace.document().run;
  if (workspace.answer() == nullptr || !run || now.iteration_s.value_or(0) <= 0)
    return;
  // Throughput of the same work at another iteration time.
  const auto throughput_in = [&](double iteration_s) {
    return sim::throughput_of(run->scenario, workspace.answer()->plan, iteration_s);
  };
  const auto of_plan = throughput_in(*now.iteration_s);
  std::optional<double> predicted;
  if (expected.iteration_s)
    predicted = throughput_in(*expected.iteration_s).units_per_s;
  add("Throughput", of_plan.units_per_s, predicted, QString::fromStdString(of_plan.unit) + "/s",
      rate_words, "Over all replicas.");
}

QString subtitle_of(const plan::Scenario& scenario) {
  QStringList parts{QString::fromStdString(scenario.pipeline.schedule.label()),
                    QString("%1 × %2").arg(
                        counted(scenario.pipeline.ranks, "rank", "ranks"),
                        counted(scenario.pipeline.microbatches, "microbatch", "microbatches"))};
  if (scenario.pipeline.replicas > 1)
    parts << counted(scenario.pipeline.replicas, "replica", "replicas");
  return parts.join("  ·  ");
}

}  // namespace

QString change_words(double before, double after, QString (*words)(double)) {
  if (before == after || (before != 0 && std::abs(after - before) < 5e-5 * std::abs(before)))
    return {};
  const QString amount = (after >= before ? "+" : "−") + words(std::abs(after - before));
  if (before == 0)
    return amount;
  const double change = 100 * (after / before - 1);
  return QString("%1 (%2%3 %)")
      .arg(amount, change >= 0 ? "+" : "−", QString::number(std::abs(change), 'f', 1));
}

Headline headline_of(const Workspace& workspace) {
  Headline headline;
  const Document& document = workspace.document();
  headline.title = QString::fromStdString(document.title);
  const bool run = workspace.shown() == Workspace::Shown::Run;
  if (workspace.has_plan()) {
    const plan::Scenario& scenario =
        run && document.run ? document.run->scenario : workspace.draft().scenario;
    headline.title = QString::fromStdString(scenario.name);
    headline.subtitle = subtitle_of(scenario);
    if (run && document.measured)
      headline.subtitle += "  ·  measured";
    else if (!workspace.draft().costs)
      headline.subtitle += "  ·  estimated costs";
    else if (document.kind == Document::Kind::Run && workspace.changed())
      headline.subtitle += "  ·  drafted";
  } else if (workspace.front()) {
    const PaintedTable& front = *workspace.front();
    headline.subtitle =
        rows_words(workspace) + "  ·  " + counted(front.table().size(), "event", "events");
  }
  if (workspace.answer() != nullptr) {
    QStringList notes;
    for (const std::string& note : workspace.answer()->notes)
      notes << QString::fromStdString(note);
    headline.subtitle_help = notes.join("\n");
  }

  if (run && workspace.front())
    add_run_figures(workspace, headline);
  else if (workspace.answer() != nullptr)
    add_plan_figures(workspace, headline);
  if (!run) {
    const search::Answer* answer = workspace.answer();
    if (answer == nullptr)
      headline.refusal = QString::fromStdString(workspace.refusal().text);
    else if (answer->over)
      headline.refusal = QString::fromStdString(sim::to_string(*answer->over));
    headline.for_memory =
        answer != nullptr ? answer->over.has_value() : workspace.refusal().for_memory;
  }
  return headline;
}

}  // namespace pipewright::gui
