#include "pipewright/gui/panels/why_panel.hpp"

#include <QScrollArea>
#include <QTextDocument>
#include <QVBoxLayout>
#include <algorithm>

#include "catalog.hpp"
#include "pipewright/gui/look/words.hpp"
#include "pipewright/gui/panels/titled.hpp"

namespace pipewright::gui {
namespace {

constexpr std::size_t most_waited_for = 4;

QString of_std(const std::string& text) { return QString::fromStdString(text); }

/// Builds HTML in the sizes of the theme.
class WhyHtml {
 public:
  explicit WhyHtml(const Theme& theme) : theme_(theme) {}

  WhyHtml& heading(const QString& text) {
    return add("<p style=\"margin:0 0 6px 0\">" + gui::heading(text) + "</p>");
  }
  WhyHtml& paragraph(const QString& text) {
    return add(QString("<p style=\"margin:0 0 8px 0\">%1</p>").arg(text));
  }
  WhyHtml& soft(const QString& text) { return paragraph(gui::soft(text, theme_)); }
  WhyHtml& begin_rows() {
    return add("<table cellspacing=\"0\" cellpadding=\"0\" style=\"margin-top:4px\">");
  }
  WhyHtml& row(const QString& name, const QString& value) {
    return add(QString("<tr><td style=\"color:%1; padding:1px 16px 1px 0; white-space:nowrap\">%2"
                       "</td><td style=\"padding:1px 0\">%3</td></tr>")
                   .arg(theme_.soft_text.name(), name, value));
  }
  WhyHtml& end_rows() { return add("</table>"); }
  QString take() { return std::move(text_); }

 private:
  WhyHtml& add(const QString& text) {
    text_ += text;
    return *this;
  }
  const Theme& theme_;
  QString text_;
};

/// Returns a clickable action name such as "2F5".
QString link_to(const PaintedTable& table, std::uint64_t event) {
  return QString("<a href=\"event:%1\" style=\"text-decoration:none\">%2</a>")
      .arg(event)
      .arg(of_std(table.table().name_at(event)).toHtmlEscaped());
}

QString rank_of(const PaintedTable& table, std::uint64_t event) {
  return of_std(plan::rank_name(table.table(), table.table().tracks[table.track_of(event)].rank))
      .toHtmlEscaped();
}

/// Describes the steps of a foreign trace, and what it cannot explain.
QString trace_sentence(const plan::TimelineFacts& facts) {
  const plan::MarkedStep* const typical = facts.typical_step();
  const QString steps = typical == nullptr
                            ? QString("This trace marks no steps.")
                            : QString("This trace marks %1; %2 takes %3.")
                                  .arg(counted(facts.steps.size(), "step", "steps"),
                                       facts.steps.size() > 1 ? "the median one" : "it",
                                       time_words(typical->length().value));
  return steps + " It does not say what a thread waits for.";
}

/// Returns the busy time of each row of a foreign trace, which is all that is known.
FigureTable trace_area_table(const PaintedTable& table, const PickedArea& area) {
  FigureTable figures;
  figures.columns = {{"row", "", false},
                     {"busy", "time in which at least one event of the row runs", true},
                     {"of the area", "", true}};
  for (const int rank : area.ranks) {
    const double busy = table.busy(rank, area.first, area.last);
    const double time = area.last - area.first;
    FigureTable::Row row;
    row.cells = {words_cell(of_std(plan::rank_name(table.table(), rank))), time_cell(busy),
                 words_cell(percent_words(time > 0 ? busy / time : 0))};
    figures.rows.push_back(std::move(row));
  }
  return figures;
}

/// The columns of an area that have a value in some row.
class AreaColumns {
 public:
  explicit AreaColumns(const std::vector<AreaRow>& rows) {
    for (std::size_t cause = 0; cause < plan::idle_cause_count; ++cause)
      if (std::any_of(rows.begin(), rows.end(),
                      [&](const AreaRow& row) { return row.spent.idle[cause] > 0; }))
        causes_.push_back(cause);
    bool any_unnamed = false;
    for (const AreaRow& row : rows) {
      any_held_ = any_held_ || row.held.has_value();
      any_unnamed = any_unnamed || row.spent.unnamed > 0;
    }
    with_unnamed_ = any_unnamed && !causes_.empty();
  }

  bool any_held() const { return any_held_; }

  std::vector<FigureTable::Column> titles() const {
    std::vector<FigureTable::Column> titles{{"rank", "", false},
                                            {"compute", "time in which the rank computes", true},
                                            {"idle", "time in which it does not", true}};
    for (const std::size_t at : causes_) {
      const auto cause = static_cast<plan::IdleCause>(at);
      titles.push_back({of_std(plan::to_string(cause)), meaning_of(cause), true});
    }
    if (with_unnamed_)
      titles.push_back({"no cause", "idle time whose cause is not known", true});
    titles.push_back({"sends", "time in which it sends, whatever else it does", true});
    if (any_held_) {
      titles.push_back({"memory at start", "its memory when the area begins", true});
      titles.push_back({"at end", "its memory when the area ends", true});
      titles.push_back({"peak", "its peak memory in between", true});
    }
    return titles;
  }

  FigureTable::Row cells(const QString& name, const TimeBreakdown& spent,
                         const std::optional<HeldWithin>& held) const {
    FigureTable::Row row;
    row.cells = {words_cell(name), time_cell(spent.busy), time_cell(spent.idle_sum())};
    for (const std::size_t cause : causes_)
      row.cells.push_back(time_cell(spent.idle[cause]));
    if (with_unnamed_)
      row.cells.push_back(time_cell(spent.unnamed));
    row.cells.push_back(time_cell(spent.transfer));
    const HeldWithin shown = held.value_or(HeldWithin{});
    if (any_held_)
      for (const std::int64_t bytes : {shown.start, shown.end, shown.peak})
        row.cells.push_back(bytes_cell(static_cast<double>(bytes)));
    return row;
  }

 private:
  std::vector<std::size_t> causes_;
  bool with_unnamed_ = false;
  bool any_held_ = false;
};

}  // namespace

QString step_sentence(const PaintedTable& table) {
  if (!table.facts().is_iteration)
    return trace_sentence(table.facts());
  const TimeBreakdown all = spent_by_all(table);
  const double time = all.busy + all.idle_sum();
  if (all.idle_sum() <= 0)
    return "No rank is ever idle.";
  const auto cause = largest_cause(all);
  const QString idle = QString("Ranks stand idle for %1 of the time")
                           .arg(percent_words(time > 0 ? all.idle_sum() / time : 0));
  if (!cause)
    return idle + ".";
  const double largest = all.idle[static_cast<std::size_t>(*cause)];
  return QString("%1. %2 of it is %3: %4.")
      .arg(idle, percent_words(largest / all.idle_sum()), of_std(plan::to_string(*cause)),
           meaning_of(*cause));
}

FigureTable area_table(const PaintedTable& table, const PickedArea& area) {
  if (!table.facts().is_iteration)
    return trace_area_table(table, area);
  const std::vector<AreaRow> rows = area_rows(table, area);
  const AreaColumns columns(rows);
  FigureTable figures;
  figures.columns = columns.titles();
  TimeBreakdown all;
  HeldWithin held;
  for (const AreaRow& row : rows) {
    figures.rows.push_back(
        columns.cells(of_std(plan::rank_name(table.table(), row.rank)), row.spent, row.held));
    all += row.spent;
    if (row.held) {
      held.start += row.held->start;
      held.end += row.held->end;
      held.peak = std::max(held.peak, row.held->peak);
    }
  }
  FigureTable::Row total = columns.cells("all", all, held);
  if (columns.any_held())
    total.cells.back().text += " (largest)";
  total.is_total = true;
  figures.rows.push_back(std::move(total));
  return figures;
}

WhyPanel::WhyPanel(Workspace& workspace, QWidget* parent)
    : Panel(workspace, {Workspace::Change::Pick, Workspace::Change::Tables}, parent) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  pages_ = new QStackedWidget;
  layout->addWidget(pages_);
  pages_->addWidget(make_words());
  pages_->addWidget(make_area());
  QObject::connect(words_, &QLabel::linkActivated, this,
                   [this](const QString& link) { follow(link); });
}

/// Creates the page for an action or a bubble: its explanation, and the shares of idle time next to
/// it.
QWidget* WhyPanel::make_words() {
  words_ = new QLabel;
  words_->setObjectName("why_words");
  words_->setTextFormat(Qt::RichText);
  words_->setTextInteractionFlags(Qt::TextBrowserInteraction);
  words_->setWordWrap(true);
  words_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  words_->setMaximumWidth(900);
  words_->setFont(font_of(text_size));
  of_rank_ = new ShareBar;
  of_all_ = new ShareBar;
  auto* page = new QWidget;
  page->setAutoFillBackground(true);
  page->setBackgroundRole(QPalette::Base);
  auto* columns = new QHBoxLayout(page);
  columns->setContentsMargins(2 * gap, 3 * gap / 2, 2 * gap, gap);
  columns->setSpacing(5 * gap);
  columns->addWidget(words_, 5);
  columns->addStretch(0);
  columns->addWidget(of_rank_, 2, Qt::AlignTop);
  columns->addWidget(of_all_, 2, Qt::AlignTop);
  auto* scroll = new QScrollArea;
  scroll->setWidget(page);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setFocusPolicy(Qt::NoFocus);
  return scroll;
}

/// Creates the page for an area, rank by rank.
QWidget* WhyPanel::make_area() {
  auto* area = new QWidget;
  area->setAutoFillBackground(true);
  area->setBackgroundRole(QPalette::Base);
  auto* lines = new QVBoxLayout(area);
  lines->setContentsMargins(gap, gap, gap, 0);
  lines->setSpacing(gap / 2);
  area_title_ = new QLabel;
  area_title_->setContentsMargins(gap, 0, 0, 0);
  table_ = new FigureTableView;
  table_->setObjectName("why_table");
  lines->addWidget(area_title_);
  lines->addWidget(table_, 1);
  return area;
}

void WhyPanel::set_theme(const Theme& theme) {
  theme_ = &theme;
  of_rank_->set_theme(theme);
  of_all_->set_theme(theme);
  table_->set_theme(theme);
  renew();
}

QString WhyPanel::spoken() const {
  if (pages_->currentIndex() == 1)
    return area_title_->text() + '\n' + table_->shown_tsv();
  QTextDocument text;
  text.setHtml(words_->text());
  return text.toPlainText();
}

void WhyPanel::follow(const QString& link) {
  if (link.startsWith("event:"))
    workspace_.pick(PickedEvent{false, link.mid(6).toULongLong()});
  else if (link.startsWith("ghost:"))
    workspace_.pick(PickedEvent{true, link.mid(6).toULongLong()});
}

void WhyPanel::rebuild() {
  show_picked();
  // Screen readers spell out rich text with its tags unless the label has a plain accessible name.
  words_->setAccessibleName(pages_->currentIndex() == 0 ? spoken() : QString());
}

void WhyPanel::show_picked() {
  const auto& front = workspace_.front();
  of_rank_->setVisible(false);
  const bool ranks_wait = front && front->facts().is_iteration;
  of_all_->setVisible(ranks_wait);
  pages_->setCurrentIndex(0);
  if (!front) {
    words_->setText(html_of_nothing());
    return;
  }
  if (ranks_wait) {
    const TimeBreakdown all = spent_by_all(*front);
    of_all_->show_shares("Idle, all ranks", time_words(all.idle_sum()), shares_of(all, *theme_));
  }
  const auto show_rank = [&](int rank) {
    if (!ranks_wait)
      return;
    const TimeBreakdown spent = spent_by(*front, rank, 0, front->length());
    of_rank_->show_shares("Idle, " + of_std(plan::rank_name(front->table(), rank)),
                          time_words(spent.idle_sum()), shares_of(spent, *theme_));
    of_rank_->setVisible(true);
  };
  const Picked& picked = workspace_.picked();
  if (const auto* event = std::get_if<PickedEvent>(&picked)) {
    words_->setText(html_of(*event));
    const PaintedTable& table = event->ghost ? *workspace_.ghost() : *front;
    const int rank = table.table().tracks[table.track_of(event->event)].rank;
    if (rank < front->table().ranks)
      show_rank(rank);
  } else if (const auto* idle = std::get_if<PickedIdle>(&picked)) {
    words_->setText(html_of(*idle));
    show_rank(idle->rank);
  } else if (const auto* area = std::get_if<PickedArea>(&picked)) {
    area_title_->setText(
        QString("<b>%1 from %2 to %3</b>, %4 of the %5 · Ctrl+C copies the table")
            .arg(time_words(area->last - area->first), time_words(area->first),
                 time_words(area->last),
                 percent_words(front->length() > 0 ? (area->last - area->first) / front->length()
                                                   : 0),
                 ranks_wait ? "iteration" : "trace"));
    table_->show_table(area_table(*front, *area));
    pages_->setCurrentIndex(1);
  } else {
    words_->setText(html_of_nothing());
  }
}

QString WhyPanel::html_of_nothing() const {
  WhyHtml html(*theme_);
  if (!workspace_.front()) {
    if (!workspace_.refusal().text.empty())
      return html.heading("This plan is not possible")
          .paragraph(of_std(workspace_.refusal().text).toHtmlEscaped())
          .take();
    return html.heading("Nothing is open yet")
        .paragraph("Open a scenario, a run's folder or a trace, and click into its timeline.")
        .take();
  }
  html.heading("Where does the time go?").paragraph(step_sentence(*workspace_.front()));
  if (!workspace_.front()->facts().is_iteration)
    return html
        .soft(
            "Click an <b>event</b> to read when it ran, or <b>drag</b> across rows to measure an "
            "area, row by row.")
        .take();
  return html
      .soft(
          "Click <b>idle time</b> (the light stretches of a row) to read its cause, or "
          "an <b>action</b> to see what it waited for. <b>Drag</b> across rows to measure an "
          "area, rank by rank.")
      .take();
}

QString WhyPanel::html_of(const PickedIdle& picked) const {
  const PaintedTable& front = *workspace_.front();
  WhyHtml html(*theme_);
  const QString rank = of_std(plan::rank_name(front.table(), picked.rank)).toHtmlEscaped();
  if (!front.facts().is_iteration)
    return html
        .heading(QString("%1 has no event for %2")
                     .arg(upper_first(rank), time_words(picked.end - picked.start)))
        .paragraph("What it waited for, if it did, is not in the trace.")
        .take();
  const auto cause_at = front.idle_at(picked.rank, picked.time);
  QString heading =
      QString("%1 is idle for %2").arg(upper_first(rank), time_words(picked.end - picked.start));
  if (cause_at)
    heading +=
        ": " +
        of_std(plan::to_string(static_cast<plan::IdleCause>(front.table().idle[*cause_at].cause)));
  html.heading(heading);
  const auto why = workspace_.why_idle(picked.rank, picked.time);
  if (!why) {
    return html.paragraph("This timeline has no Program, so what it waited for is not known.")
        .take();
  }
  html.paragraph(upper_first(of_std(why->sentence).toHtmlEscaped()) + ".");
  if (why->cause && why->end - why->start < (picked.end - picked.start) * 0.999)
    html.soft(QString("%1 of this stretch are %2, from %3 to %4.")
                  .arg(time_words(why->end - why->start), of_std(plan::to_string(*why->cause)),
                       time_words(why->start), time_words(why->end)));
  html.begin_rows();
  const char* link = "waits";
  for (const int event : why->chain) {
    const std::int64_t at = workspace_.table_event(event);
    if (at < 0)
      continue;
    const auto id = static_cast<std::uint64_t>(at);
    html.row(link,
             QString("%1 &nbsp;%2, on %3, %4 to %5")
                 .arg(link_to(front, id), action_words(front.table().name_at(id)).toHtmlEscaped(),
                      rank_of(front, id), time_words(front.table().start[id]),
                      time_words(front.table().end[id])));
    link = "for";
  }
  return html.end_rows().take();
}

QString WhyPanel::html_of(const PickedEvent& picked) const {
  const PaintedTable& own = picked.ghost ? *workspace_.ghost() : *workspace_.front();
  const ActionFacts facts = facts_of(workspace_, picked);
  WhyHtml html(*theme_);
  const QString meaning = action_words(facts.name);
  html.heading(of_std(facts.name).toHtmlEscaped() + (meaning.isEmpty() ? "" : " · " + meaning) +
               (picked.ghost ? ", behind" : ""));
  html.begin_rows();
  html.row("Runs on", of_std(plan::rank_name(own.table(), facts.rank)).toHtmlEscaped());
  html.row("Takes", QString("<b>%1</b> &nbsp;from %2 to %3")
                        .arg(time_words(facts.end - facts.start), time_words(facts.start),
                             time_words(facts.end)));
  if (facts.other) {
    const double own_took = facts.end - facts.start, took = facts.other_end - facts.other_start;
    const double longer = picked.ghost ? took - own_took : own_took - took;
    const double later =
        picked.ghost ? facts.other_start - facts.start : facts.start - facts.other_start;
    const double expected = picked.ghost ? own_took : took;
    const bool is_run = workspace_.shown() == Workspace::Shown::Run;
    html.row(is_run ? (picked.ghost ? "Measured" : "Predicted") : (picked.ghost ? "Now" : "Before"),
             QString("%1 &nbsp;from %2: it takes %3, and begins %4 %5")
                 .arg(time_words(took), time_words(facts.other_start),
                      expected > 0 ? QString("%1 (%2%3) %4")
                                         .arg(time_words(std::abs(longer)), longer < 0 ? "-" : "+",
                                              percent_words(std::abs(longer) / expected),
                                              longer < 0 ? "less" : "more")
                                   : time_words(took),
                      time_words(std::abs(later)), later < 0 ? "earlier" : "later"));
  }
  if (facts.critical)
    html.row("Critical", "yes: the iteration is as long as this path");
  if (facts.slack)
    html.row("Slack", *facts.slack > 1e-9
                          ? QString("could end %1 later without lengthening the iteration")
                                .arg(time_words(*facts.slack))
                          : QString("none: the iteration waits for it"));
  for (std::size_t i = 0; i < std::min(most_waited_for, facts.waited_for.size()); ++i) {
    const WaitedFor& waited = facts.waited_for[i];
    html.row(i == 0 ? "Waited for" : "and",
             QString("%1 &nbsp;%2, on %3, over at %4")
                 .arg(link_to(own, waited.event),
                      action_words(own.table().name_at(waited.event)).toHtmlEscaped(),
                      rank_of(own, waited.event), time_words(waited.over)));
  }
  return html.end_rows().take();
}

PanelDescriptor panel::why() {
  return {.name = "why",
          .title = "Why",
          .help = "Explains what you clicked on, and what delayed it.",
          .shortcut = "Alt+1",
          .dock = PanelDock::Details,
          .make = [](PanelHost& host) -> MadePanel { return new WhyPanel(host.workspace); }};
}

}  // namespace pipewright::gui
