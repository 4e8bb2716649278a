#pragma once

// Notes as flags in the ruler, painted over the timeline; a click opens one for editing.

#include <QWidget>
#include <functional>
#include <optional>
#include <vector>

#include "pipewright/gui/document/notes.hpp"
#include "pipewright/gui/look/theme.hpp"
#include "pipewright/gui/timeline/timeline_view.hpp"

namespace pipewright::gui {

class NotesLayer : public QWidget {
 public:
  /// `timeline` must outlive it.
  explicit NotesLayer(TimelineView& timeline);
  void set_theme(const Theme& theme);

  const std::vector<Note>& notes() const { return notes_; }
  void set_notes(std::vector<Note> notes);
  /// Returns a new note at the selection, or in the middle of the visible section; nothing if there
  /// is no timeline.
  std::optional<Note> blank() const;
  /// Returns the note whose flag is at this point.
  std::optional<std::size_t> note_at(QPointF at) const;
  QRectF flag_of(const Note& note) const;

  std::function<void(std::size_t note)> on_clicked;

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  TimelineView& timeline_;
  const Theme* theme_;
  std::vector<Note> notes_;
};

/// The result of editing a note.
struct EditedNote {
  enum class What { Kept, Saved, Deleted };
  What what = What::Kept;
  Note note;
};
EditedNote edit_note(const Note& note, bool is_new, QWidget* window);

}  // namespace pipewright::gui
