#pragma once

// Notes beside a timeline. They lie in a file of its own, FILE.notes.json: data are
// never touched.

#include <filesystem>
#include <string>
#include <vector>

namespace pipewright::gui {

struct Note {
  double time = 0;  // seconds
  int rank = -1;    // -1: of all
  std::string text;
  friend bool operator==(const Note&, const Note&) = default;
};

/// "run/" → "run.notes.json".
std::filesystem::path notes_file(const std::filesystem::path& document);

/// Empty where there is no file. What is wrong with it is added to `problems`, and the rest read.
std::vector<Note> read_notes(const std::filesystem::path& file, std::vector<std::string>& problems);

/// No notes: no file. Throws InputError where it cannot be written.
void write_notes(const std::filesystem::path& file, const std::vector<Note>& notes);

}  // namespace pipewright::gui
