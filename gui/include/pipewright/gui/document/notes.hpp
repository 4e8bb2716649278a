#pragma once

// Notes on a timeline. They are stored in a separate file, FILE.notes.json; the timeline's own file
// is never changed.

#include <filesystem>
#include <string>
#include <vector>

namespace pipewright::gui {

struct Note {
  double time = 0;  // seconds
  int rank = -1;    // -1: all ranks
  std::string text;
  friend bool operator==(const Note&, const Note&) = default;
};

/// Returns the notes file of a document: "run/" → "run.notes.json".
std::filesystem::path notes_file(const std::filesystem::path& document);

/// Returns an empty list if there is no file. Errors are added to `problems`, and the other notes
/// are read.
std::vector<Note> read_notes(const std::filesystem::path& file, std::vector<std::string>& problems);

/// Writes the notes, or removes the file if the list is empty. Throws InputError if it cannot be
/// written.
void write_notes(const std::filesystem::path& file, const std::vector<Note>& notes);

}  // namespace pipewright::gui
