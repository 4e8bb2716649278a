#include "pipewright/gui/panels/problems_panel.hpp"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QPainter>
#include <QVBoxLayout>

#include "catalog.hpp"
#include "pipewright/gui/look/words.hpp"

namespace pipewright::gui {
namespace {

/// Returns a dot whose color shows the severity.
QIcon dot(const QColor& color) {
  QPixmap pixmap(24, 24);
  pixmap.setDevicePixelRatio(2);
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  painter.setBrush(color);
  painter.drawEllipse(QPointF(6, 6), 3.5, 3.5);
  return QIcon(pixmap);
}

}  // namespace

ProblemsPanel::ProblemsPanel(Workspace& workspace, QWidget* parent)
    : QWidget(parent), workspace_(workspace), theme_(&light_theme()) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(2 * gap, gap, 2 * gap, gap);
  layout->setSpacing(gap);
  auto* top = new QHBoxLayout;
  heading_ = new QLabel;
  heading_->setFont(font_of(heading_size, true));
  copy_ = new QPushButton("Copy");
  copy_->setToolTip("Copies the selected lines, or all of them.");
  top->addWidget(heading_, 1);
  top->addWidget(copy_);
  layout->addLayout(top);
  list_ = new QListWidget;
  list_->setObjectName("problems_list");
  list_->setAccessibleName("Problems and notes");
  list_->setFrameShape(QFrame::NoFrame);
  list_->setWordWrap(true);
  list_->setIconSize({12, 12});
  list_->setSpacing(2);
  list_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  layout->addWidget(list_, 1);
  layout->addStretch();

  const auto copy = [this] { QApplication::clipboard()->setText(text()); };
  connect(copy_, &QPushButton::clicked, this, copy);
  auto* by_key = new QAction("Copy", list_);
  by_key->setShortcut(QKeySequence::Copy);
  by_key->setShortcutContext(Qt::WidgetShortcut);
  connect(by_key, &QAction::triggered, this, copy);
  list_->addAction(by_key);
  list_->setContextMenuPolicy(Qt::ActionsContextMenu);
  workspace_.observe([this](Workspace::Change change) { refresh(change); });
  fill();
}

void ProblemsPanel::set_theme(const Theme& theme) {
  theme_ = &theme;
  fill();
}

QString ProblemsPanel::text() const {
  QStringList lines;
  const bool some = !list_->selectedItems().isEmpty();
  for (int row = 0; row < list_->count(); ++row)
    if (const QListWidgetItem* item = list_->item(row); !some || item->isSelected())
      lines << item->text();
  return lines.join('\n');
}

void ProblemsPanel::fill() {
  list_->clear();
  const auto add = [&](const std::string& line, const QColor& color) {
    auto* item = new QListWidgetItem(dot(color), QString::fromStdString(line), list_);
    item->setToolTip(item->text());
  };
  const Document& document = workspace_.document();
  for (const std::string& problem : document.problems)
    add(problem, theme_->warning);
  for (const std::string& note : document.notes)
    add(note, theme_->accent);
  std::size_t notes = document.notes.size();
  if (const search::Answer* answer = workspace_.answer()) {
    for (const std::string& note : answer->notes)
      add(note, theme_->accent);
    notes += answer->notes.size();
    if (!answer->bound.empty()) {
      add(answer->bound, theme_->accent);
      ++notes;
    }
  }
  if (!workspace_.refusal().text.empty())
    add(workspace_.refusal().text, theme_->warning);
  const std::size_t problems =
      document.problems.size() + (workspace_.refusal().text.empty() ? 0U : 1U);
  if (problems > 0 && notes > 0)
    heading_->setText(counted(problems, "problem", "problems") + ", " +
                      counted(notes, "note", "notes"));
  else if (problems > 0)
    heading_->setText(counted(problems, "problem", "problems"));
  else if (notes > 0)
    heading_->setText("No problems, " + counted(notes, "note", "notes"));
  else
    heading_->setText("No problems: everything could be read.");
  copy_->setVisible(list_->count() > 0);
  list_->setVisible(list_->count() > 0);
}

void ProblemsPanel::refresh(Workspace::Change change) {
  if (change == Workspace::Change::Document || change == Workspace::Change::Plan)
    fill();
}

PanelDescriptor panel::problems() {
  return {.name = "problems",
          .title = "Problems",
          .help = "What could not be read, and what was assumed.",
          .shortcut = "Alt+7",
          .dock = PanelDock::Details,
          .make = [](PanelHost& host) -> MadePanel { return new ProblemsPanel(host.workspace); }};
}

}  // namespace pipewright::gui
