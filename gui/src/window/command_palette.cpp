#include "pipewright/gui/window/command_palette.hpp"

#include <QKeyEvent>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <algorithm>

#include "pipewright/gui/window/fuzzy_match.hpp"

namespace pipewright::gui {
namespace {

constexpr std::size_t most_shown = 60;
constexpr int line_height = 28;

/// Paints a command's name with the typed letters in bold, and its shortcut at the right.
class EntryPainter : public QStyledItemDelegate {
 public:
  EntryPainter(const QLineEdit& typed, QObject* parent)
      : QStyledItemDelegate(parent), typed_(typed) {}

  QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override {
    return {100, line_height};
  }

  void paint(QPainter* painter, const QStyleOptionViewItem& option,
             const QModelIndex& index) const override {
    const bool chosen = (option.state & QStyle::State_Selected) != 0;
    const QPalette& palette = option.palette;
    const QRect box = option.rect.adjusted(4, 1, -4, -1);
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    if (chosen) {
      painter->setPen(Qt::NoPen);
      painter->setBrush(palette.color(QPalette::Highlight));
      painter->drawRoundedRect(box, 4, 4);
    }
    const QColor text = palette.color(chosen ? QPalette::HighlightedText : QPalette::Text);
    const QString name = index.data(Qt::DisplayRole).toString();
    const auto match = fuzzy_match(typed_.text(), name);
    double x = box.left() + gap;
    painter->setPen(text);
    const QFont plain = font_of(text_size), bold = font_of(text_size, true);
    for (int at = 0; at < name.size(); ++at) {
      const bool typed = match && std::find(match->letters.begin(), match->letters.end(), at) !=
                                      match->letters.end();
      painter->setFont(typed ? bold : plain);
      painter->drawText(QPointF(x, box.center().y() + text_size * 0.4), name.mid(at, 1));
      x += QFontMetricsF(typed ? bold : plain).horizontalAdvance(name[at]);
    }
    painter->setFont(font_of(small_size));
    painter->setPen(chosen ? text : palette.color(QPalette::PlaceholderText));
    painter->drawText(box.adjusted(0, 0, -gap, 0), Qt::AlignRight | Qt::AlignVCenter,
                      index.data(Qt::UserRole).toString());
    painter->restore();
  }

 private:
  const QLineEdit& typed_;
};

}  // namespace

std::vector<PaletteEntry> fitting(const QString& typed, std::vector<PaletteEntry> entries) {
  if (typed.trimmed().isEmpty())
    return entries;
  std::vector<std::pair<int, std::size_t>> order;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].always)
      order.emplace_back(1'000'000, i);
    else if (const auto match = fuzzy_match(typed, entries[i].text))
      order.emplace_back(match->score, i);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<PaletteEntry> found;
  for (const auto& [score, i] : order)
    found.push_back(std::move(entries[i]));
  return found;
}

CommandPalette::CommandPalette(std::function<std::vector<PaletteEntry>(const QString&)> entries,
                               QWidget* window)
    : QFrame(window),
      entries_(std::move(entries)),
      theme_(&light_theme()),
      line_(new QLineEdit),
      list_(new QListWidget) {
  setObjectName("palette");
  setAccessibleName("Command palette");
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(gap, gap, gap, gap);
  layout->setSpacing(gap);
  line_->setPlaceholderText("A command, a rank, an action such as 2F5, a recent file");
  line_->setAccessibleName("What to do");
  list_->setFrameShape(QFrame::NoFrame);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  list_->setUniformItemSizes(true);
  list_->setItemDelegate(new EntryPainter(*line_, list_));
  list_->setFocusPolicy(Qt::NoFocus);
  layout->addWidget(line_);
  layout->addWidget(list_);
  line_->installEventFilter(this);
  connect(line_, &QLineEdit::textChanged, this, [this] { fill(); });
  connect(list_, &QListWidget::itemClicked, this, [this] { choose(); });
  hide();
}

void CommandPalette::set_theme(const Theme& theme) {
  theme_ = &theme;
  setStyleSheet(QString("#palette { background: %1; border: 1px solid %2; border-radius: 8px; }"
                        "QListWidget { background: transparent; }"
                        "QLineEdit { min-height: 24px; }")
                    .arg(theme.panel.name(), theme.line.name()));
}

void CommandPalette::open() {
  const QWidget* window = parentWidget();
  const int width = std::min(620, window->width() - 4 * gap);
  setGeometry((window->width() - width) / 2, std::min(72, window->height() / 8), width,
              std::min(440, window->height() * 2 / 3));
  line_->clear();
  fill();
  show();
  raise();
  line_->setFocus();
}

void CommandPalette::fill() {
  shown_ = fitting(line_->text(), entries_(line_->text()));
  if (shown_.size() > most_shown)
    shown_.resize(most_shown);
  list_->clear();
  for (const PaletteEntry& entry : shown_) {
    auto* item = new QListWidgetItem(entry.text, list_);
    item->setData(Qt::UserRole, entry.detail);
  }
  list_->setCurrentRow(0);
}

void CommandPalette::choose() {
  const int row = list_->currentRow();
  if (row < 0 || row >= static_cast<int>(shown_.size()))
    return;
  const auto run = shown_[static_cast<std::size_t>(row)].run;
  hide();
  parentWidget()->setFocus();
  run();
}

bool CommandPalette::eventFilter(QObject*, QEvent* event) {
  if (event->type() == QEvent::FocusOut && !isAncestorOf(focusWidget())) {
    hide();
    return false;
  }
  if (event->type() != QEvent::KeyPress)
    return false;
  const auto move = [&](int by) {
    list_->setCurrentRow(std::clamp(list_->currentRow() + by, 0, std::max(0, list_->count() - 1)));
    return true;
  };
  switch (static_cast<QKeyEvent*>(event)->key()) {
    case Qt::Key_Down:
      return move(1);
    case Qt::Key_Up:
      return move(-1);
    case Qt::Key_PageDown:
      return move(10);
    case Qt::Key_PageUp:
      return move(-10);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      choose();
      return true;
    case Qt::Key_Escape:
      hide();
      parentWidget()->setFocus();
      return true;
    default:
      return false;
  }
}

}  // namespace pipewright::gui
