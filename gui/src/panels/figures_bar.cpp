#include "pipewright/gui/panels/figures_bar.hpp"

#include <QEvent>
#include <QHBoxLayout>
#include <QPainter>
#include <QPointer>
#include <QVBoxLayout>
#include <algorithm>

#include "catalog.hpp"
#include "pipewright/gui/look/labels.hpp"
#include "pipewright/gui/look/words.hpp"

namespace pipewright::gui {
namespace {

constexpr std::size_t most_figures = 4;
/// Long enough that dragging does not start a search.
constexpr int remedy_after_ms = 400;

QColor tone_color(const Theme& theme, Headline::Tone tone) {
  switch (tone) {
    case Headline::Tone::Neutral:
      return theme.soft_text;
    case Headline::Tone::Better:
      return theme.dark ? QColor("#3cc79a") : QColor("#007a5a");
    case Headline::Tone::Worse:
      return theme.warning;
  }
  return theme.soft_text;
}

}  // namespace

FiguresBar::FiguresBar(Workspace& workspace, QWidget* parent)
    : QWidget(parent), workspace_(workspace), theme_(&light_theme()) {
  setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);  // a narrow window cuts it off
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(2 * gap, gap, 2 * gap, gap);
  all->setSpacing(gap);
  auto* line = new QHBoxLayout;
  line->setSpacing(4 * gap);
  all->addLayout(line);
  line->addLayout(make_names());
  for (std::size_t i = 0; i < most_figures; ++i) {
    blocks_.push_back(make_block(static_cast<int>(i)));
    line->addWidget(blocks_.back().box);
  }
  line->addStretch(1);
  line->addLayout(make_buttons());
  all->addWidget(make_alert());

  remedy_timer_.setSingleShot(true);
  remedy_timer_.setInterval(remedy_after_ms);
  connect(&remedy_timer_, &QTimer::timeout, this, [this] { look_for_remedy(); });
  workspace_.observe([this](Workspace::Change change) { refresh(change); });
  show_headline();
}

/// Creates the labels for the title, and for how it was planned.
QLayout* FiguresBar::make_names() {
  auto* names = new QVBoxLayout;
  names->setSpacing(2);
  title_ = make_label(heading_size, true);
  subtitle_ = make_label(text_size);
  title_->setAccessibleName("What is shown");
  names->addStretch();
  names->addWidget(title_);
  names->addWidget(subtitle_);
  names->addStretch();
  return names;
}

QToolButton* FiguresBar::make_side(const char* name, const char* text, const char* help,
                                   Workspace::Shown shown) {
  auto* button = new QToolButton;
  button->setObjectName(name);
  button->setText(text);
  button->setToolTip(help);
  button->setCheckable(true);
  button->setFont(font_of(text_size));
  connect(button, &QToolButton::clicked, this, [this, shown] {
    workspace_.show(shown);
    show_headline();
  });
  return button;
}

/// Creates the buttons for run, plan and baseline.
QLayout* FiguresBar::make_buttons() {
  auto* buttons = new QHBoxLayout;
  buttons->setSpacing(0);
  run_ = make_side("figures.run", "Run", "The measured run, in front of its prediction (Ctrl+1).",
                   Workspace::Shown::Run);
  plan_ = make_side("figures.plan", "Plan", "The prediction of the draft (Ctrl+2).",
                    Workspace::Shown::Plan);
  buttons->addWidget(run_);
  buttons->addWidget(plan_);
  buttons->addSpacing(gap);
  keep_ = new QPushButton("Keep as baseline");
  keep_->setObjectName("figures.keep");
  keep_->setFont(font_of(text_size));
  keep_->setToolTip("Compare further changes with the plan as it is now (Ctrl+K).");
  connect(keep_, &QPushButton::clicked, this, [this] { workspace_.keep_as_baseline(); });
  buttons->addWidget(keep_);
  return buttons;
}

/// Creates the message about an impossible plan, with a button for a change that makes it fit.
QWidget* FiguresBar::make_alert() {
  alert_ = new QWidget;
  alert_->setObjectName("figures.alert");
  auto* alert = new QHBoxLayout(alert_);
  alert->setContentsMargins(gap + 4, gap / 2, gap / 2, gap / 2);
  alert->setSpacing(2 * gap);
  alert_text_ = make_label(text_size);
  alert_text_->setWordWrap(true);
  alert_text_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  alert_text_->setAccessibleName("Why the plan is not possible");
  alert_button_ = new QPushButton;
  alert_button_->setObjectName("figures.remedy");
  alert_button_->setFont(font_of(text_size));
  connect(alert_button_, &QPushButton::clicked, this, [this] { apply_remedy(); });
  alert->addWidget(alert_text_, 1);
  alert->addWidget(alert_button_);
  return alert_;
}

FiguresBar::Block FiguresBar::make_block(int place) {
  Block block;
  block.box = new QWidget;
  block.box->setObjectName(QString("figures.%1").arg(place));
  auto* column = new QVBoxLayout(block.box);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  block.caption = make_label(small_size);
  block.value = make_label(figure_size, true);
  block.beside = make_label(text_size);
  block.note = make_label(small_size);
  auto* figure = new QHBoxLayout;
  figure->setSpacing(6);
  figure->addWidget(block.value, 0, Qt::AlignBaseline);
  figure->addWidget(block.beside, 0, Qt::AlignBaseline);
  figure->addStretch(1);
  column->addWidget(block.caption);
  column->addLayout(figure);
  column->addWidget(block.note);
  // The bar keeps its height when differences appear and disappear.
  block.note->setMinimumHeight(block.note->fontMetrics().height());
  return block;
}

void FiguresBar::set_theme(const Theme& theme) {
  theme_ = &theme;
  show_headline();
  update();
}

void FiguresBar::refresh(Workspace::Change change) {
  if (change == Workspace::Change::Plan) {
    search_ = Search::None;
    remedy_.reset();
  }
  // Every change of the plan ends with a change of the tables.
  if (change == Workspace::Change::Tables || change == Workspace::Change::Document ||
      change == Workspace::Change::Job)
    show_headline();
}

void FiguresBar::show_figure(const Block& block, const Headline::Figure& figure) {
  block.caption->setText(figure.caption);
  block.value->setText(figure.value);
  block.beside->setText(figure.beside);
  block.note->setText(figure.note);
  block.box->setToolTip(figure.help);
  block.box->setAccessibleName(QString("%1: %2 %3 %4")
                                   .arg(figure.caption, figure.value, figure.beside, figure.note)
                                   .simplified());
  set_color(block.caption, theme_->soft_text);
  set_color(block.value, theme_->text);
  set_color(block.beside, theme_->soft_text);
  set_color(block.note, tone_color(*theme_, figure.tone));
}

void FiguresBar::show_headline() {
  const Headline headline = headline_of(workspace_);
  title_->setText(headline.title.isEmpty() ? "Pipewright" : headline.title);
  subtitle_text_ = headline.title.isEmpty() ? "Nothing is open" : headline.subtitle;
  subtitle_help_ = headline.subtitle_help;
  set_color(title_, theme_->text);
  set_color(subtitle_, theme_->soft_text);
  figures_ = headline.figures.size();
  for (std::size_t i = 0; i < std::min(blocks_.size(), figures_); ++i)
    show_figure(blocks_[i], headline.figures[i]);
  const bool both = workspace_.has_plan() && workspace_.document().measured.has_value();
  run_->setVisible(both);
  plan_->setVisible(both);
  run_->setChecked(workspace_.shown() == Workspace::Shown::Run);
  plan_->setChecked(workspace_.shown() == Workspace::Shown::Plan);
  keep_->setVisible(workspace_.has_plan());
  keep_->setEnabled(workspace_.changed() && workspace_.answer() != nullptr);
  fit();
  show_alert(headline);
}

/// Shows as many figures as fit next to the names and buttons, the first ones first, and none
/// partially. Shortens the subtitle to make room for them.
void FiguresBar::fit() {
  constexpr int least_subtitle = 150;
  const QFontMetrics metrics = subtitle_->fontMetrics();
  const int subtitle = metrics.horizontalAdvance(subtitle_text_) + 2;
  const int names = std::max(title_->sizeHint().width(), std::min(subtitle, least_subtitle));
  int room = width() - names - 12 * gap;
  for (const QWidget* button :
       {static_cast<QWidget*>(run_), static_cast<QWidget*>(plan_), static_cast<QWidget*>(keep_)})
    room -= button->isVisibleTo(this) ? button->sizeHint().width() : 0;
  bool fits = true;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const int needed = blocks_[i].box->sizeHint().width() + 4 * gap;
    fits = fits && i < figures_ && (i == 0 || room >= needed);
    blocks_[i].box->setVisible(fits);
    room -= fits ? needed : 0;
  }
  subtitle_->setText(metrics.elidedText(subtitle_text_, Qt::ElideRight, names + std::max(0, room)));
  QStringList help{subtitle_help_};
  if (subtitle_->text() != subtitle_text_)
    help.prepend(subtitle_text_);  // the full text of a shortened subtitle
  help.removeAll(QString());
  subtitle_->setToolTip(help.join("\n"));
}

/// The sizes of its parts are known only when they have their fonts, after they were first shown.
bool FiguresBar::event(QEvent* event) {
  if (event->type() == QEvent::LayoutRequest)
    fit();
  return QWidget::event(event);
}

void FiguresBar::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fit();
}

void FiguresBar::show_alert(const Headline& headline) {
  alert_->setVisible(!headline.refusal.isEmpty());
  if (headline.refusal.isEmpty()) {
    remedy_timer_.stop();
    return;
  }
  QString words = headline.refusal;
  if (!words.endsWith('.'))
    words += '.';
  alert_button_->setVisible(headline.for_memory && (search_ != Search::Over || remedy_));
  if (headline.for_memory && search_ == Search::Over) {
    if (remedy_) {
      words += QString(" With %1 it fits: %2, %3 an iteration.")
                   .arg(QString::fromStdString(remedy_->assignment),
                        byte_words(static_cast<double>(remedy_->need.peak.value)),
                        time_words(remedy_->need.iteration.value));
      alert_button_->setText("Set " + QString::fromStdString(remedy_->assignment));
    } else {
      words += " None of the single changes that were tried makes it fit.";
    }
  } else if (headline.for_memory && search_ == Search::Begun) {
    alert_button_->setText("Searching for a fitting change…");
  } else if (headline.for_memory) {
    alert_button_->setText("Find a fitting change");
    remedy_timer_.start();
  }
  alert_text_->setText(words);
  set_color(alert_text_, theme_->text);
  QColor ground = theme_->warning;
  ground.setAlphaF(theme_->dark ? 0.18F : 0.10F);
  alert_->setStyleSheet(QString("#figures\\.alert { background: %1; border-left: 3px solid %2; }")
                            .arg(ground.name(QColor::HexArgb), theme_->warning.name()));
}

void FiguresBar::look_for_remedy() {
  remedy_timer_.stop();
  if (search_ == Search::Begun)
    return;
  search_ = Search::Begun;
  workspace_.look_for_remedy([bar = QPointer(this)](const std::optional<sim::Remedy>& remedy) {
    if (!bar)
      return;
    bar->remedy_ = remedy;
    bar->search_ = Search::Over;
    bar->show_headline();
  });
  show_headline();
}

void FiguresBar::apply_remedy() {
  if (search_ != Search::Over) {
    look_for_remedy();
    return;
  }
  if (remedy_) {
    const std::string assignment = remedy_->assignment;
    workspace_.set(assignment);
    workspace_.settle();
  }
}

void FiguresBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme_->panel);
  painter.fillRect(QRect(0, height() - 1, width(), 1), theme_->line);
}

PanelDescriptor panel::figures() {
  return {.name = "figures",
          .title = "Figures",
          .help = "The iteration, bubble, memory and throughput of the shown timeline.",
          .shortcut = "",
          .dock = PanelDock::Above,
          .make = [](PanelHost& host) -> MadePanel { return new FiguresBar(host.workspace); }};
}

}  // namespace pipewright::gui
