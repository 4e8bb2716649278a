#include "pipewright/gui/panels/what_if_panel.hpp"

#include <QEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QPainter>
#include <QScrollArea>
#include <QScrollBar>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "catalogue.hpp"
#include "pipewright/gui/look/labels.hpp"
#include "pipewright/gui/look/words.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::gui {
namespace {

constexpr int label_width = 114;
constexpr int value_width = 84;
constexpr std::size_t most_changes = 8;

/// "iteration -1.2 ms (-3.1 %), bubble -0.9 ms (warm-up -1.1 ms, transfer +0.2 ms), peak +2 MB" in
/// a line for each figure.
QString in_lines(const std::string& difference) {
  QString lines;
  int depth = 0;
  for (std::size_t i = 0; i < difference.size(); ++i) {
    const char c = difference[i];
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      lines += '\n';
      ++i;  // the space behind it
    } else {
      lines += QChar(c == '-' && i > 0 && difference[i - 1] == ' ' ? u'−' : c);
    }
  }
  return lines;
}

/// With a mark that more can be chosen: a sheet takes the style's away.
class Choice : public QComboBox {
 protected:
  void paintEvent(QPaintEvent* event) override {
    QComboBox::paintEvent(event);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(palette().color(QPalette::PlaceholderText), 1.5, Qt::SolidLine,
                        Qt::RoundCap, Qt::RoundJoin));
    const QPointF tip(width() - 12, height() / 2.0 + 2);
    painter.drawPolyline(QPolygonF{tip + QPointF(-3.5, -3.5), tip, tip + QPointF(3.5, -3.5)});
  }
};

}  // namespace

WhatIfPanel::WhatIfPanel(Workspace& workspace, QWidget* parent)
    : QWidget(parent), workspace_(workspace), theme_(&light_theme()) {
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->setSpacing(0);
  empty_ = make_label(text_size);
  empty_->setWordWrap(true);
  empty_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  empty_->setMargin(12);
  soft_labels_.push_back(empty_);
  all->addWidget(empty_);

  content_ = new QWidget;
  auto* content = new QVBoxLayout(content_);
  content->setContentsMargins(0, 0, 0, 0);
  content->setSpacing(0);
  auto* scroll = new QScrollArea;
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setFocusPolicy(Qt::NoFocus);
  auto* rows = new QWidget;
  rows_layout_ = new QVBoxLayout(rows);
  rows_layout_->setContentsMargins(12, 0, 12, gap);
  rows_layout_->setSpacing(4);
  const char* group = "";
  const auto open_group = [&](const char* name) {
    if (std::strcmp(group, name) != 0)
      add_heading(name);
    group = name;
  };
  for (const char* wanted : {"Pipeline", "Work", "Cluster"}) {
    for (const PlanChoice& choice : plan_choices())
      if (std::strcmp(choice.group, wanted) == 0 &&
          std::strcmp(choice.name, "pipeline.partition") != 0) {
        open_group(wanted);
        add_choice(choice);
      }
    for (const PlanField& field : plan_fields())
      if (std::strcmp(field.group, wanted) == 0) {
        open_group(wanted);
        add_number(&field);
      }
    for (const PlanChoice& choice : plan_choices())
      if (std::strcmp(choice.group, wanted) == 0 &&
          std::strcmp(choice.name, "pipeline.partition") == 0)
        add_choice(choice);
  }
  add_heading("Speed of a rank");
  add_number(nullptr);
  rows_layout_->addStretch(1);
  scroll->setWidget(rows);
  content->addWidget(scroll, 1);
  make_changes(content);
  all->addWidget(content_, 1);
  workspace_.observe([this](Workspace::Change change) { refresh(change); });
  refresh(Workspace::Change::Document);
}

void WhatIfPanel::add_heading(const char* text) {
  QLabel* heading = make_label(small_size, true);
  heading->setText(text);
  heading->setContentsMargins(0, headings_.empty() ? gap / 2 : gap + 4, 0, 2);
  headings_.push_back(heading);
  rows_layout_->addWidget(heading);
}

WhatIfPanel::Row& WhatIfPanel::add_row(const char* label, const QString& name,
                                       const QString& help) {
  rows_.push_back(std::make_unique<Row>());
  Row& row = *rows_.back();
  row.box = new QWidget;
  row.box->setObjectName("what_if." + name);
  auto* column = new QVBoxLayout(row.box);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(2);
  auto* line = new QHBoxLayout;
  line->setSpacing(gap);
  row.label = make_label(text_size);
  row.label->setText(label);
  row.label->setFixedWidth(label_width);
  row.label->setToolTip(help);
  line->addWidget(row.label);
  column->addLayout(line);
  row.error = make_label(small_size);
  row.error->setWordWrap(true);
  row.error->setObjectName("what_if.error." + name);
  row.error->hide();
  column->addWidget(row.error);
  rows_layout_->addWidget(row.box);
  return row;
}

void WhatIfPanel::add_number(const PlanField* field) {
  const QString name = field != nullptr ? field->name : "cluster.rank_speeds";
  const QString help = field != nullptr
                           ? field->help
                           : "How fast a rank computes beside the device that was measured: a "
                             "straggler at 0.8 × holds up all others.";
  Row& row = add_row(field != nullptr ? field->label : "Speed", name, help);
  Row* const at = &row;
  row.field = field;
  auto* line = static_cast<QHBoxLayout*>(row.box->layout()->itemAt(0)->layout());
  if (field == nullptr) {
    row.label->hide();
    row.combo = new Choice;
    row.combo->setFont(font_of(text_size));
    row.combo->setFixedWidth(label_width);
    row.combo->setToolTip(help);
    row.combo->setAccessibleName("Rank whose speed is set");
    row.combo->installEventFilter(this);
    connect(row.combo, &QComboBox::currentIndexChanged, this, [this, at] { show_row(*at); });
    line->insertWidget(0, row.combo);
  }
  const QString label = field != nullptr ? field->label : "Speed of the rank";
  row.slider = new QSlider(Qt::Horizontal);
  row.slider->setObjectName("what_if.slider." + name);
  row.slider->setAccessibleName(label);
  row.slider->setAccessibleDescription(help);
  row.slider->setToolTip(help);
  row.slider->setMinimumWidth(60);
  row.slider->setPageStep(4);
  row.slider->installEventFilter(this);
  connect(row.slider, &QSlider::valueChanged, this, [this, at](int place) {
    set_number(*at, at->values[static_cast<std::size_t>(
                        std::clamp(place, 0, static_cast<int>(at->values.size()) - 1))]);
  });
  connect(row.slider, &QSlider::sliderReleased, this, [this] { workspace_.settle(); });
  line->addWidget(row.slider, 1);

  row.edit = new QLineEdit;
  row.edit->setObjectName("what_if.field." + name);
  row.edit->setFont(font_of(text_size));
  row.edit->setAlignment(Qt::AlignRight);
  row.edit->setFixedWidth(value_width);
  row.edit->setAccessibleName(label);
  row.edit->setAccessibleDescription(help);
  row.edit->setToolTip(help);
  row.edit->installEventFilter(this);
  connect(row.edit, &QLineEdit::editingFinished, this, [this, at] {
    if (!at->edit->isModified() || !workspace_.has_plan())
      return;
    at->edit->setModified(false);
    const QString text = at->edit->text();
    const auto value = read_value(at->unit(), text, value_words(at->unit(), value_of(*at)));
    if (value) {
      set_number(*at, *value);
      workspace_.settle();
      return;
    }
    show_number(*at, value_of(*at));
    at->error->setText(QString("“%1” is no value here: it can be such as %2")
                           .arg(text, value_words(at->unit(), value_of(*at))));
    at->error->show();
  });
  line->addWidget(row.edit);
  setTabOrder(row.slider, row.edit);
}

void WhatIfPanel::add_choice(const PlanChoice& choice) {
  Row& row = add_row(choice.label, choice.name, choice.help);
  Row* const at = &row;
  row.choice = &choice;
  auto* line = static_cast<QHBoxLayout*>(row.box->layout()->itemAt(0)->layout());
  row.combo = new Choice;
  row.combo->setObjectName(QString("what_if.choice.") + choice.name);
  row.combo->setFont(font_of(text_size));
  row.combo->setAccessibleName(choice.label);
  row.combo->setAccessibleDescription(choice.help);
  row.combo->setMaxVisibleItems(30);
  row.combo->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  row.combo->installEventFilter(this);
  for (const PlanChoice::Option& option : choice.options) {
    row.combo->addItem(option.words, QString::fromStdString(option.value));
    row.combo->setItemData(row.combo->count() - 1, option.help, Qt::ToolTipRole);
  }
  connect(row.combo, &QComboBox::currentIndexChanged, this, [this, at] {
    const QString value = at->combo->currentData().toString();
    if (value.isEmpty())
      return;
    set(*at, std::string(at->choice->name) + "=" + value.toStdString());
    workspace_.settle();
  });
  line->addWidget(row.combo, 1);
}

void WhatIfPanel::make_changes(QVBoxLayout* into) {
  changes_box_ = new QWidget;
  auto* column = new QVBoxLayout(changes_box_);
  column->setContentsMargins(12, gap, 12, 12);
  column->setSpacing(gap / 2 + 2);
  auto* line = new QHBoxLayout;
  line->setSpacing(gap / 2);
  QLabel* heading = make_label(small_size, true);
  heading->setText("What changed");
  headings_.push_back(heading);
  line->addWidget(heading, 1);
  const auto add = [&](const char* name, const char* text, auto&& run) {
    auto* button = new QToolButton;
    button->setObjectName(name);
    button->setText(text);
    button->setFont(font_of(small_size));
    connect(button, &QToolButton::clicked, this, run);
    line->addWidget(button);
    return button;
  };
  undo_ = add("what_if.undo", "Undo", [this] { workspace_.undo(); });
  redo_ = add("what_if.redo", "Redo", [this] { workspace_.redo(); });
  back_ = add("what_if.back", "Start over", [this] { workspace_.back_to_baseline(); });
  back_->setToolTip("Back to the plan that the figures are held against. It can be undone.");
  column->addLayout(line);
  changes_ = make_label(text_size);
  changes_->setObjectName("what_if.changes");
  changes_->setWordWrap(true);
  column->addWidget(changes_);
  effect_ = make_label(small_size);
  effect_->setObjectName("what_if.effect");
  effect_->setWordWrap(true);
  soft_labels_.push_back(effect_);
  column->addWidget(effect_);
  into->addWidget(changes_box_);
}

void WhatIfPanel::set_theme(const Theme& theme) {
  theme_ = &theme;
  for (QLabel* label : headings_)
    set_colour(label, theme.soft_text);
  for (QLabel* label : soft_labels_)
    set_colour(label, theme.soft_text);
  for (const auto& row : rows_) {
    set_colour(row->error, theme.warning);
    if (row->label != nullptr)
      set_colour(row->label, theme.text);
  }
  changes_box_->setObjectName("what_if_changes");
  changes_box_->setStyleSheet(
      QString("#what_if_changes { border-top: 1px solid %1; }").arg(theme.line.name()));
  refresh(Workspace::Change::Document);
  update();
}

bool WhatIfPanel::eventFilter(QObject* watched, QEvent* event) {
  // A wheel that was meant to scroll would turn what happens to be below it.
  if (event->type() == QEvent::Wheel) {
    event->ignore();
    return true;
  }
  if (event->type() == QEvent::KeyRelease && !static_cast<QKeyEvent*>(event)->isAutoRepeat())
    workspace_.settle();
  if (event->type() == QEvent::KeyPress) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    for (const auto& row : rows_)
      if (row->edit == watched && (key == Qt::Key_Up || key == Qt::Key_Down)) {
        row->slider->setValue(row->slider->value() + (key == Qt::Key_Up ? 1 : -1));
        return true;
      }
  }
  return QWidget::eventFilter(watched, event);
}

int WhatIfPanel::chosen_rank(const Row& row) const {
  return std::clamp(row.combo->currentIndex(), 0, workspace_.draft().scenario.pipeline.ranks - 1);
}

double WhatIfPanel::value_of(const Row& row) const {
  const plan::Scenario& scenario = workspace_.draft().scenario;
  return row.field != nullptr ? row.field->value(scenario) : speed_of(scenario, chosen_rank(row));
}

void WhatIfPanel::set_number(Row& row, double value) {
  if (!workspace_.has_plan())
    return;
  if (row.field != nullptr)
    set(row, assignment_of(*row.field, value));
  else
    set(row, speed_assignment(workspace_.draft().scenario, chosen_rank(row), value));
}

void WhatIfPanel::set(Row& row, const std::string& assignment) {
  QString refused;
  try {
    workspace_.set(assignment);
  } catch (const plan::InputError& error) {
    refused = plain_words(error);
  }
  for (const auto& other : rows_)
    other->error->hide();
  if (!refused.isEmpty()) {
    row.error->setText(refused);
    row.error->show();
    show_row(row);  // as it was
  }
}

void WhatIfPanel::refresh(Workspace::Change change) {
  if (change == Workspace::Change::Tables || change == Workspace::Change::Pick)
    return;
  const bool has_plan = workspace_.has_plan();
  content_->setVisible(has_plan);
  empty_->setVisible(!has_plan);
  if (!has_plan) {
    empty_->setText(workspace_.document().kind == Document::Kind::Nothing
                        ? "Open a scenario or a run to ask what would happen if."
                        : "What was opened has no scenario beside it, so nothing can be asked of "
                          "its plan. Open a scenario or a run's folder.");
    return;
  }
  if (change == Workspace::Change::Document)
    for (const auto& row : rows_) {
      row->error->hide();
      row->values.clear();
    }
  for (const auto& row : rows_)
    show_row(*row);
  show_changes();
}

void WhatIfPanel::show_row(Row& row) {
  if (!workspace_.has_plan())
    return;
  const plan::Scenario& scenario = workspace_.draft().scenario;
  if (row.choice != nullptr) {
    show_choice(row);
    return;
  }
  if (row.field == nullptr) {
    const QSignalBlocker blocker(row.combo);
    const int ranks = scenario.pipeline.ranks;
    while (row.combo->count() > ranks)
      row.combo->removeItem(row.combo->count() - 1);
    while (row.combo->count() < ranks)
      row.combo->addItem(QString("Rank %1").arg(row.combo->count()));
    row.combo->setCurrentIndex(std::clamp(row.combo->currentIndex(), 0, ranks - 1));
  } else if (std::strncmp(row.field->name, "cluster.between_nodes", 21) == 0) {
    row.box->setVisible(scenario.cluster.nodes > 1);
  }
  show_number(row, value_of(row));
}

void WhatIfPanel::show_number(Row& row, double value) {
  const plan::Scenario& scenario = workspace_.draft().scenario;
  const bool known = std::any_of(row.values.begin(), row.values.end(), [&](double each) {
    return std::abs(each - value) <= 1e-9 * std::abs(value);
  });
  if (!known || (!row.slider->isSliderDown() && row.field != nullptr &&
                 row.unit() == PlanField::Unit::CountOrAuto))
    row.values = slider_values(row.unit(), value,
                               row.field != nullptr ? slider_most(*row.field, scenario) : 2);
  const QSignalBlocker blocker(row.slider);
  row.slider->setRange(0, static_cast<int>(row.values.size()) - 1);
  row.slider->setValue(slider_place(row.values, value));
  if (!row.edit->hasFocus() || !row.edit->isModified())
    row.edit->setText(value_words(row.unit(), value));
}

void WhatIfPanel::show_choice(Row& row) {
  const QSignalBlocker blocker(row.combo);
  const std::string value = row.choice->value(workspace_.draft().scenario);
  int index = row.combo->findData(QString::fromStdString(value));
  // What was chosen otherwise stands last, for as long as it is so.
  const int options = static_cast<int>(row.choice->options.size());
  while (row.combo->count() > options)
    row.combo->removeItem(options);
  if (index < 0 || index >= options) {
    row.combo->addItem(value.empty() ? "chosen by hand" : QString::fromStdString(value));
    index = options;
  }
  row.combo->setCurrentIndex(index);
  row.combo->setToolTip(QString::fromUtf8(row.choice->help) + "\n" +
                        row.combo->itemData(index, Qt::ToolTipRole).toString());
}

void WhatIfPanel::show_changes() {
  const loop::DraftHistory& history = workspace_.history();
  undo_->setEnabled(history.can_undo());
  redo_->setEnabled(history.can_redo());
  undo_->setToolTip(history.can_undo() ? "Undo " + QString::fromStdString(history.undo_text())
                                       : QString("Nothing to undo."));
  redo_->setToolTip(history.can_redo() ? "Redo " + QString::fromStdString(history.redo_text())
                                       : QString("Nothing to redo."));
  back_->setEnabled(workspace_.changed());
  for (const auto& row : rows_)
    if (row->label != nullptr && row->field != nullptr) {
      const double before = row->field->value(workspace_.baseline_draft().scenario);
      const bool differs = before != row->field->value(workspace_.draft().scenario);
      row->label->setFont(font_of(text_size, differs));
    } else if (row->choice != nullptr) {
      row->label->setFont(
          font_of(text_size, row->choice->value(workspace_.baseline_draft().scenario) !=
                                 row->choice->value(workspace_.draft().scenario)));
    }
  if (!workspace_.changed()) {
    changes_->setText("Nothing yet: turn something above, or drag a border of stages.");
    set_colour(changes_, theme_->soft_text);
    effect_->hide();
    return;
  }
  set_colour(changes_, theme_->text);
  std::vector<QString> changes =
      changes_between(workspace_.baseline_draft().scenario, workspace_.draft().scenario);
  QStringList lines(changes.begin(), changes.begin() + static_cast<std::ptrdiff_t>(
                                                           std::min(changes.size(), most_changes)));
  if (changes.size() > most_changes)
    lines << QString("… and %1 more").arg(changes.size() - most_changes);
  changes_->setText(lines.join('\n'));
  const loop::Answer* answer = workspace_.answer();
  effect_->show();
  if (answer == nullptr)
    effect_->setText("It is not possible: see above the timeline why.");
  else if (workspace_.baseline() != nullptr)
    effect_->setText(
        in_lines(loop::difference(workspace_.baseline()->figures, answer->figures).text));
  else
    effect_->hide();
}

PanelDescriptor panel::what_if() {
  return {.name = "what_if",
          .title = "What if",
          .help = "Fields and sliders for the plan: each change is answered at once.",
          .shortcut = "Alt+9",
          .dock = PanelDock::Side,
          .make = [](PanelHost& host) -> MadePanel { return new WhatIfPanel(host.workspace); }};
}

}  // namespace pipewright::gui
