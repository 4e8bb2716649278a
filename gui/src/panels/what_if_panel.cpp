#include "pipewright/gui/panels/what_if_panel.hpp"

#include <QEvent>
#include <QKeyEvent>
#include <QScrollArea>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "catalog.hpp"
#include "pipewright/gui/look/labels.hpp"
#include "pipewright/gui/look/words.hpp"
#include "pipewright/gui/panels/choice.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::gui {
namespace {

constexpr int label_width = 114;
constexpr int value_width = 84;
constexpr std::size_t most_changes = 8;

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
  soft_labels_.emplace_back(empty_);
  all->addWidget(empty_);

  content_ = new QWidget;
  auto* content = new QVBoxLayout(content_);
  content->setContentsMargins(0, 0, 0, 0);
  content->setSpacing(0);
  content->addWidget(make_rows(), 1);
  make_changes(content);
  all->addWidget(content_, 1);
  workspace_.observe([this](Workspace::Change change) { refresh(change); });
  refresh(Workspace::Change::Document);
}

/// Creates a row for each field, below the heading of its group.
QWidget* WhatIfPanel::make_rows() {
  auto* rows = new QWidget;
  auto* layout = new QVBoxLayout(rows);
  layout->setContentsMargins(12, 0, 12, gap);
  layout->setSpacing(4);
  add_rows(plan_fields(), *layout);
  cluster_layout_ = new QVBoxLayout;
  layout->addLayout(cluster_layout_);
  layout->addStretch(1);
  auto* scroll = new QScrollArea;
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setFocusPolicy(Qt::NoFocus);
  scroll->setWidget(rows);
  return scroll;
}

void WhatIfPanel::add_rows(const std::vector<PlanField>& fields, QVBoxLayout& into) {
  QString group;
  for (const PlanField& field : fields) {
    if (group != field.group)
      into.addWidget(make_heading(field.group));
    group = field.group;
    Row& row = add_row(field, into);
    if (row.is_choice()) {
      add_options(row);
      continue;
    }
    if (row.is_speed())
      add_rank(row);
    add_slider(row);
    add_edit(row);
    setTabOrder(row.slider, row.edit);
  }
}

QLabel* WhatIfPanel::make_heading(const QString& text) {
  QLabel* heading = make_label(small_size, true);
  heading->setText(text);
  heading->setContentsMargins(0, headings_.empty() ? gap / 2 : gap + 4, 0, 2);
  headings_.emplace_back(heading);
  set_color(heading, theme_->soft_text);
  return heading;
}

/// Replaces the rows of link levels and node kinds, which belong to one cluster.
void WhatIfPanel::show_cluster() {
  const plan::Cluster& cluster = workspace_.draft().scenario.cluster;
  std::vector<PlanField> fields = cluster_fields(cluster);
  QString words = cluster_words(cluster);
  const auto is_same = [](const PlanField& a, const PlanField& b) {
    return a.name == b.name && a.group == b.group;  // these determine its other members
  };
  if (words == cluster_words_ && std::equal(fields.begin(), fields.end(), cluster_fields_.begin(),
                                            cluster_fields_.end(), is_same))
    return;
  delete cluster_box_;  // together with the widgets of its rows
  std::erase_if(rows_,
                [](const auto& row) { return find_plan_field(row->field->name) == nullptr; });
  cluster_fields_ = std::move(fields);
  cluster_words_ = std::move(words);
  cluster_box_ = new QWidget;
  auto* layout = new QVBoxLayout(cluster_box_);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(4);
  add_rows(cluster_fields_, *layout);
  if (!cluster_words_.isEmpty()) {
    QLabel* const label = make_label(small_size);
    label->setObjectName("what_if.cluster");
    label->setText(cluster_words_);
    label->setWordWrap(true);
    soft_labels_.emplace_back(label);
    set_color(label, theme_->soft_text);
    layout->addWidget(label);
  }
  cluster_layout_->addWidget(cluster_box_);
}

WhatIfPanel::Row& WhatIfPanel::add_row(const PlanField& field, QVBoxLayout& into) {
  const auto name = QString::fromStdString(field.name);
  rows_.push_back(std::make_unique<Row>());
  Row& row = *rows_.back();
  row.field = &field;
  row.box = new QWidget;
  row.box->setObjectName("what_if." + name);
  auto* column = new QVBoxLayout(row.box);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(2);
  row.line = new QHBoxLayout;
  row.line->setSpacing(gap);
  row.label = make_label(text_size);
  row.label->setText(field.label);
  row.label->setFixedWidth(label_width);
  row.label->setToolTip(field.help);
  row.line->addWidget(row.label);
  column->addLayout(row.line);
  row.error = make_label(small_size);
  row.error->setWordWrap(true);
  row.error->setObjectName("what_if.error." + name);
  row.error->hide();
  column->addWidget(row.error);
  into.addWidget(row.box);
  set_color(row.label, theme_->text);
  set_color(row.error, theme_->warning);
  return row;
}

/// Adds the choice of the rank whose speed is set, in place of the label.
void WhatIfPanel::add_rank(Row& row) {
  row.label->hide();
  row.combo = new Choice;
  row.combo->setFont(font_of(text_size));
  row.combo->setFixedWidth(label_width);
  row.combo->setToolTip(row.field->help);
  row.combo->setAccessibleName("Rank whose speed is set");
  row.combo->installEventFilter(this);
  connect(row.combo, &QComboBox::currentIndexChanged, this, [this, &row] { show_row(row); });
  row.line->insertWidget(0, row.combo);
}

void WhatIfPanel::add_slider(Row& row) {
  row.slider = new QSlider(Qt::Horizontal);
  row.slider->setObjectName(QString("what_if.slider.") + QString::fromStdString(row.field->name));
  row.slider->setAccessibleName(row.field->label);
  row.slider->setAccessibleDescription(row.field->help);
  row.slider->setToolTip(row.field->help);
  row.slider->setMinimumWidth(60);
  row.slider->setPageStep(4);
  row.slider->installEventFilter(this);
  connect(row.slider, &QSlider::valueChanged, this, [this, &row](int place) {
    const int last = static_cast<int>(row.values.size()) - 1;
    set_number(row, row.values[static_cast<std::size_t>(std::clamp(place, 0, last))]);
  });
  connect(row.slider, &QSlider::sliderReleased, this, [this] { workspace_.settle(); });
  row.line->addWidget(row.slider, 1);
}

void WhatIfPanel::add_edit(Row& row) {
  row.edit = new QLineEdit;
  row.edit->setObjectName(QString("what_if.field.") + QString::fromStdString(row.field->name));
  row.edit->setFont(font_of(text_size));
  row.edit->setAlignment(Qt::AlignRight);
  row.edit->setFixedWidth(value_width);
  row.edit->setAccessibleName(row.field->label);
  row.edit->setAccessibleDescription(row.field->help);
  row.edit->setToolTip(row.field->help);
  row.edit->installEventFilter(this);
  connect(row.edit, &QLineEdit::editingFinished, this, [this, &row] { take_text(row); });
  row.line->addWidget(row.edit);
}

void WhatIfPanel::take_text(Row& row) {
  if (!row.edit->isModified() || !workspace_.has_plan())
    return;
  row.edit->setModified(false);
  const QString text = row.edit->text(), shown = value_words(row.field->unit, value_of(row));
  if (const auto value = read_value(row.field->unit, text, shown)) {
    set_number(row, *value);
    workspace_.settle();
    return;
  }
  show_number(row, value_of(row));
  row.error->setText(QString("“%1” is not a valid value. Example: %2").arg(text, shown));
  row.error->show();
}

void WhatIfPanel::add_options(Row& row) {
  row.combo = new Choice;
  row.combo->setObjectName(QString("what_if.choice.") + QString::fromStdString(row.field->name));
  row.combo->setFont(font_of(text_size));
  row.combo->setAccessibleName(row.field->label);
  row.combo->setAccessibleDescription(row.field->help);
  row.combo->setMaxVisibleItems(30);
  row.combo->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  row.combo->installEventFilter(this);
  for (const PlanField::Option& option : row.field->options) {
    row.combo->addItem(option.words, QString::fromStdString(option.value));
    row.combo->setItemData(row.combo->count() - 1, option.help, Qt::ToolTipRole);
  }
  connect(row.combo, &QComboBox::currentIndexChanged, this, [this, &row] {
    const QString value = row.combo->currentData().toString();
    if (value.isEmpty())
      return;
    set(row, row.field->name + "=" + value.toStdString());
    workspace_.settle();
  });
  row.line->addWidget(row.combo, 1);
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
  headings_.emplace_back(heading);
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
  back_->setToolTip("Back to the baseline that the figures are compared with. This can be undone.");
  column->addLayout(line);
  changes_ = make_label(text_size);
  changes_->setObjectName("what_if.changes");
  changes_->setWordWrap(true);
  column->addWidget(changes_);
  effect_ = make_label(small_size);
  effect_->setObjectName("what_if.effect");
  effect_->setWordWrap(true);
  soft_labels_.emplace_back(effect_);
  column->addWidget(effect_);
  into->addWidget(changes_box_);
}

void WhatIfPanel::set_theme(const Theme& theme) {
  theme_ = &theme;
  for (const auto* labels : {&headings_, &soft_labels_})
    for (const QPointer<QLabel>& label : *labels)
      if (label)
        set_color(label, theme.soft_text);
  for (const auto& row : rows_) {
    set_color(row->error, theme.warning);
    set_color(row->label, theme.text);
  }
  changes_box_->setObjectName("what_if_changes");
  changes_box_->setStyleSheet(
      QString("#what_if_changes { border-top: 1px solid %1; }").arg(theme.line.name()));
  refresh(Workspace::Change::Document);
  update();
}

bool WhatIfPanel::eventFilter(QObject* watched, QEvent* event) {
  // A wheel event meant for scrolling must not change the control under the mouse.
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
  return row.is_speed() ? speed_of(workspace_.draft().scenario, chosen_rank(row))
                        : number_of(*row.field, now_);
}

void WhatIfPanel::set_number(Row& row, double value) {
  if (!workspace_.has_plan())
    return;
  set(row, row.is_speed() ? speed_assignment(workspace_.draft().scenario, chosen_rank(row), value)
                          : assignment_of(*row.field, value));
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
    show_row(row);  // restores it
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
                        ? "Open a scenario or a run to use What if."
                        : "This document has no scenario, so its plan cannot be changed. "
                          "Open a scenario or a run's folder.");
    return;
  }
  show_cluster();
  now_ = to_json(workspace_.draft().scenario);
  before_ = to_json(workspace_.baseline_draft().scenario);
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
  if (row.is_choice()) {
    show_choice(row);
    return;
  }
  if (row.is_speed()) {
    const QSignalBlocker blocker(row.combo);
    const int ranks = scenario.pipeline.ranks;
    while (row.combo->count() > ranks)
      row.combo->removeItem(row.combo->count() - 1);
    while (row.combo->count() < ranks)
      row.combo->addItem(QString("Rank %1").arg(row.combo->count()));
    row.combo->setCurrentIndex(std::clamp(row.combo->currentIndex(), 0, ranks - 1));
  } else if (row.field->name.starts_with("cluster.between_nodes")) {
    row.box->setVisible(scenario.cluster.nodes > 1);
  }
  show_number(row, value_of(row));
}

void WhatIfPanel::show_number(Row& row, double value) {
  const plan::Scenario& scenario = workspace_.draft().scenario;
  const bool known = std::any_of(row.values.begin(), row.values.end(), [&](double each) {
    return std::abs(each - value) <= 1e-9 * std::abs(value);
  });
  const PlanField::Unit unit = row.field->unit;
  if (!known || (!row.slider->isSliderDown() && unit == PlanField::Unit::CountOrAuto))
    row.values = slider_values(unit, value, slider_most(*row.field, scenario));
  const QSignalBlocker blocker(row.slider);
  row.slider->setRange(0, static_cast<int>(row.values.size()) - 1);
  row.slider->setValue(slider_place(row.values, value));
  if (!row.edit->hasFocus() || !row.edit->isModified())
    row.edit->setText(value_words(unit, value));
}

void WhatIfPanel::show_choice(Row& row) {
  const QSignalBlocker blocker(row.combo);
  const std::string value = option_of(*row.field, now_);
  // Values that are not options are appended: the baseline's, so that the user can return to it,
  // and the current one.
  const int options = static_cast<int>(row.field->options.size());
  while (row.combo->count() > options)
    row.combo->removeItem(options);
  for (const std::string& other : {option_of(*row.field, before_), value})
    if (const auto key = QString::fromStdString(other);
        !other.empty() && row.combo->findData(key) < 0)
      row.combo->addItem(other_choice_words(other), key);
  if (value.empty())
    row.combo->addItem("chosen by hand");
  const int index =
      value.empty() ? row.combo->count() - 1 : row.combo->findData(QString::fromStdString(value));
  row.combo->setCurrentIndex(index);
  row.combo->setToolTip(row.field->help + "\n" +
                        row.combo->itemData(index, Qt::ToolTipRole).toString());
}

bool WhatIfPanel::differs(const Row& row) const {
  // The baseline may have a cluster without this link level or node kind.
  if (!has_value(*row.field, before_))
    return true;
  return row.is_choice()
             ? option_of(*row.field, before_) != option_of(*row.field, now_)
             : !row.is_speed() && number_of(*row.field, before_) != number_of(*row.field, now_);
}

void WhatIfPanel::show_changes() {
  const search::DraftHistory& history = workspace_.history();
  undo_->setEnabled(history.can_undo());
  redo_->setEnabled(history.can_redo());
  undo_->setToolTip(history.can_undo() ? "Undo " + QString::fromStdString(history.undo_text())
                                       : QString("Nothing to undo."));
  redo_->setToolTip(history.can_redo() ? "Redo " + QString::fromStdString(history.redo_text())
                                       : QString("Nothing to redo."));
  back_->setEnabled(workspace_.changed());
  for (const auto& row : rows_)
    row->label->setFont(font_of(text_size, differs(*row)));
  set_color(changes_, workspace_.changed() ? theme_->text : theme_->soft_text);
  if (!workspace_.changed()) {
    changes_->setText("Nothing yet: change a value above, or drag a stage boundary.");
    effect_->hide();
    return;
  }
  const std::vector<QString> changes =
      changes_between(workspace_.baseline_draft().scenario, workspace_.draft().scenario);
  QStringList lines(changes.begin(), changes.begin() + static_cast<std::ptrdiff_t>(
                                                           std::min(changes.size(), most_changes)));
  if (changes.size() > most_changes)
    lines << QString("… and %1 more").arg(changes.size() - most_changes);
  changes_->setText(lines.join('\n'));
  show_effect();
}

/// Shows a line for each figure that differs.
void WhatIfPanel::show_effect() {
  const search::Answer* answer = workspace_.answer();
  effect_->setVisible(answer == nullptr || workspace_.baseline() != nullptr);
  if (answer == nullptr) {
    effect_->setText("The plan is not possible: the reason is shown above the timeline.");
  } else if (workspace_.baseline() != nullptr) {
    QStringList lines;
    for (const std::string& part :
         search::difference(workspace_.baseline()->figures, answer->figures).parts)
      lines << QString::fromStdString(part);
    effect_->setText(lines.isEmpty() ? QString("no difference") : lines.join('\n'));
  }
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
