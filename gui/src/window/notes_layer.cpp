#include "pipewright/gui/window/notes_layer.hpp"

#include <QDialog>
#include <QDialogButtonBox>
#include <QEvent>
#include <QHelpEvent>
#include <QLabel>
#include <QMouseEvent>
#include <QPainter>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QToolTip>
#include <QVBoxLayout>
#include <algorithm>

#include "pipewright/gui/look/words.hpp"

namespace pipewright::gui {
namespace {

constexpr double flag_top = 46;  // the ruler, below the minimap
constexpr double flag_height = 16;
constexpr double widest_flag = 150;

QString first_line(const std::string& text) {
  return QString::fromStdString(text).section('\n', 0, 0).trimmed();
}

}  // namespace

NotesLayer::NotesLayer(TimelineView& timeline)
    : QWidget(timeline.viewport()), timeline_(timeline), theme_(&light_theme()) {
  setObjectName("notes");
  setAttribute(Qt::WA_TransparentForMouseEvents);
  timeline.viewport()->installEventFilter(this);
  resize(timeline.viewport()->size());
  hide();
}

void NotesLayer::set_theme(const Theme& theme) {
  theme_ = &theme;
  update();
}

void NotesLayer::set_notes(std::vector<Note> notes) {
  notes_ = std::move(notes);
  setVisible(!notes_.empty());
  resize(timeline_.viewport()->size());
  update();
}

std::optional<Note> NotesLayer::blank() const {
  const auto& front = timeline_.front();
  if (!front)
    return {};
  const Picked& picked = timeline_.model().marks.picked;
  if (const auto* idle = std::get_if<PickedIdle>(&picked))
    return Note{idle->time, idle->rank, {}};
  if (const auto* area = std::get_if<PickedArea>(&picked))
    return Note{area->first, area->ranks.size() == 1 ? area->ranks.front() : -1, {}};
  if (const auto span = timeline_.model().tables.span_of(picked))
    return Note{span->first, span->rank, {}};
  const double middle = timeline_.scale().time(timeline_.model().layout.plot_width() / 2);
  return Note{std::clamp(middle, 0.0, front->length()), -1, {}};
}

QRectF NotesLayer::flag_of(const Note& note) const {
  const double x = timeline_.model().layout.x(note.time);
  const QFontMetricsF metrics(font_of(small_size));
  const double width =
      std::min(widest_flag, metrics.horizontalAdvance(first_line(note.text)) + 2 * gap);
  return {x, flag_top, width, flag_height};
}

std::optional<std::size_t> NotesLayer::note_at(QPointF at) const {
  if (!timeline_.front() || at.x() < timeline_.model().layout.plot_left)
    return {};
  for (std::size_t i = notes_.size(); i-- > 0;)
    if (flag_of(notes_[i]).contains(at))
      return i;
  return {};
}

void NotesLayer::paintEvent(QPaintEvent*) {
  if (!timeline_.front())
    return;
  QPainter painter(this);
  painter.setClipRect(QRectF(timeline_.model().layout.plot_left, 0,
                             width() - timeline_.model().layout.plot_left, height()));
  painter.setFont(font_of(small_size));
  const QColor ink("#1f2630");
  for (const Note& note : notes_) {
    const QRectF flag = flag_of(note);
    if (flag.right() < timeline_.model().layout.plot_left || flag.left() > width())
      continue;
    QColor line = theme_->selection;
    line.setAlphaF(0.7F);
    const QRectF row = note.rank >= 0 ? timeline_.model().layout.row_rect(note.rank) : QRectF();
    painter.setPen(QPen(line, 1, Qt::DotLine));
    painter.drawLine(QPointF(flag.left(), flag.bottom()),
                     QPointF(flag.left(), row.isEmpty() ? height() : row.bottom()));
    if (!row.isEmpty()) {
      painter.setPen(Qt::NoPen);
      painter.setBrush(theme_->selection);
      painter.setRenderHint(QPainter::Antialiasing);
      painter.drawEllipse(QPointF(flag.left(), row.center().y()), 3.5, 3.5);
      painter.setRenderHint(QPainter::Antialiasing, false);
    }
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme_->selection);
    painter.drawRect(flag);
    painter.setPen(ink);
    painter.drawText(flag.adjusted(gap / 2, 0, -gap / 2, 0), Qt::AlignVCenter | Qt::AlignLeft,
                     painter.fontMetrics().elidedText(first_line(note.text), Qt::ElideRight,
                                                      static_cast<int>(flag.width()) - gap));
  }
}

bool NotesLayer::eventFilter(QObject*, QEvent* event) {
  switch (event->type()) {
    case QEvent::Resize:
      resize(timeline_.viewport()->size());
      return false;
    case QEvent::MouseButtonPress: {
      const auto note = note_at(static_cast<QMouseEvent*>(event)->position());
      if (note && on_clicked)
        on_clicked(*note);
      return note.has_value();
    }
    case QEvent::ToolTip: {
      const auto* help = static_cast<QHelpEvent*>(event);
      const auto note = note_at(help->pos());
      if (note)
        QToolTip::showText(help->globalPos(), QString::fromStdString(notes_[*note].text),
                           timeline_.viewport());
      return note.has_value();
    }
    default:
      return false;
  }
}

EditedNote edit_note(const Note& note, bool is_new, QWidget* window) {
  QDialog dialog(window);
  dialog.setObjectName("note_dialog");
  dialog.setWindowTitle(is_new ? "New note" : "Note");
  auto* layout = new QVBoxLayout(&dialog);
  layout->setContentsMargins(2 * gap, 2 * gap, 2 * gap, 2 * gap);
  layout->setSpacing(gap);
  layout->addWidget(new QLabel(
      note.rank < 0 ? QString("At %1").arg(time_words(note.time))
                    : QString("Rank %1, at %2").arg(note.rank).arg(time_words(note.time))));
  auto* text = new QPlainTextEdit(QString::fromStdString(note.text));
  text->setPlaceholderText("Text of the note");
  text->setMinimumSize(360, 110);
  text->setTabChangesFocus(true);
  layout->addWidget(text);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Cancel);
  layout->addWidget(buttons);
  EditedNote edited{EditedNote::What::Kept, note};
  QObject::connect(buttons, &QDialogButtonBox::accepted, &dialog, &QDialog::accept);
  QObject::connect(buttons, &QDialogButtonBox::rejected, &dialog, &QDialog::reject);
  if (!is_new) {
    auto* away = buttons->addButton("Delete", QDialogButtonBox::DestructiveRole);
    QObject::connect(away, &QPushButton::clicked, &dialog, [&] {
      edited.what = EditedNote::What::Deleted;
      dialog.reject();
    });
  }
  text->setFocus();
  if (dialog.exec() == QDialog::Accepted) {
    edited.note.text = text->toPlainText().trimmed().toStdString();
    edited.what = edited.note.text.empty()
                      ? (is_new ? EditedNote::What::Kept : EditedNote::What::Deleted)
                      : EditedNote::What::Saved;
  }
  return edited;
}

}  // namespace pipewright::gui
