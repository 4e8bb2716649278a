#include "pipewright/gui/document/notes.hpp"

#include <fmt/format.h>

#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::gui {
namespace {

constexpr const char* notes_format = "pipewright/notes/1";

}  // namespace

std::filesystem::path notes_file(const std::filesystem::path& document) {
  std::filesystem::path file = document.lexically_normal();
  if (file.filename().empty())
    file = file.parent_path();
  file += ".notes.json";
  return file;
}

std::vector<Note> read_notes(const std::filesystem::path& file,
                             std::vector<std::string>& problems) {
  std::vector<Note> notes;
  std::error_code absent;
  if (!std::filesystem::is_regular_file(file, absent))
    return notes;
  try {
    const plan::JsonDocument json = plan::JsonDocument::read(file);
    const plan::Json& root = json.root();
    if (!root.is_object() || root.value("format", "") != notes_format)
      throw plan::InputError(fmt::format("{}: is not a {}", file.string(), notes_format));
    const auto list = root.find("notes");
    if (list == root.end() || !list->is_array())
      throw plan::InputError(
          fmt::format("{}: /notes: an array of notes is missing", json.position("")));
    for (std::size_t i = 0; i < list->size(); ++i) {
      const plan::Json& note = (*list)[i];
      const auto number = [&](const char* key) {
        return note.is_object() && note.contains(key) && note[key].is_number();
      };
      if (!number("time_s") || !note.contains("text") || !note["text"].is_string())
        problems.push_back(fmt::format("{}: /notes/{}: needs \"time_s\" and \"text\"",
                                       json.position(fmt::format("/notes/{}", i)), i));
      else
        notes.push_back({note["time_s"].get<double>(),
                         number("rank") ? note["rank"].get<int>() : -1,
                         note["text"].get<std::string>()});
    }
  } catch (const std::exception& error) {
    problems.push_back(error.what());
  }
  return notes;
}

void write_notes(const std::filesystem::path& file, const std::vector<Note>& notes) {
  std::error_code failure;
  if (notes.empty()) {
    std::filesystem::remove(file, failure);
    return;
  }
  plan::Json list = plan::Json::array();
  for (const Note& note : notes) {
    plan::Json one{{"time_s", note.time}};
    if (note.rank >= 0)
      one["rank"] = note.rank;
    one["text"] = note.text;
    list.push_back(std::move(one));
  }
  plan::write_file(file,
                   plan::Json{{"format", notes_format}, {"notes", std::move(list)}}.dump(2) + "\n");
}

}  // namespace pipewright::gui
