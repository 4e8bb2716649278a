// Checks that the window survives any file content, and lists the errors among the problems.
#include <QApplication>
#include <QTest>
#include <algorithm>
#include <fstream>
#include <iterator>

#include "fuzz/mutator.hpp"
#include "pipewright/gui/window/main_window.hpp"
#include "support/catch.hpp"
#include "support/temp_folder.hpp"

namespace bad_files_test {

using namespace pipewright;
using gui::Document;
namespace fs = std::filesystem;

const fs::path run_folder = PIPEWRIGHT_TEST_DATA_DIR "/gui/run";

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::vector<fs::path> files_of_run() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(run_folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// Checks that there is something to show, or a problem that says why not.
void check_opened(const Document& document) {
  const bool something = document.scenario || document.structure || document.measured ||
                         document.predicted || document.run;
  CHECK((something || !document.problems.empty()));
  for (const std::string& problem : document.problems)
    CHECK(!problem.empty());
}

/// Performs a user's usual first actions.
void look_around(gui::MainWindow& window) {
  gui::TimelineView& view = window.timeline();
  QApplication::processEvents();
  window.grab();
  for (const int key : {Qt::Key_W, Qt::Key_D, Qt::Key_BracketRight, Qt::Key_BracketRight, Qt::Key_F,
                        Qt::Key_S, Qt::Key_H})
    QTest::keyClick(&view, static_cast<Qt::Key>(key));
  const QPoint middle(view.viewport()->width() / 2, view.viewport()->height() / 2);
  QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, middle);
  window.grab();
}

const std::vector<std::string>& foreign_texts() {
  using namespace std::string_literals;
  static const std::vector<std::string> texts{
      ""s,
      " "s,
      "\n"s,
      "null"s,
      "{}"s,
      "[]"s,
      "0"s,
      "\"text\""s,
      "{"s,
      "[[[["s,
      "\xef\xbb\xbf{}"s,                 // a byte order mark
      "\xff\xfe{\0}\0"s,                 // UTF-16
      "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"s,  // a picture
      "\x7f"
      "ELF\2\1\1\0\0\0\0\0"s,    // a program
      "PK\3\4\24\0\0\0\10\0"s,   // an archive
      "\x1f\x8b\10\0\0\0\0\0"s,  // gzip
      "SQLite format 3\0"s,
      "%PDF-1.7\n"s,
      "<html><body>404</body></html>"s,
      "rank,start,end\n0,1,2\n"s,
      "0F0,0F1,,0B0\n1F0\n"s,
      "---\npipeline:\n  ranks: 4\n"s,
      "{\"traceEvents\": null}"s,
      "{\"traceEvents\": [{}]}"s,
      "{\"traceEvents\": [{\"ph\": \"X\", \"ts\": 1e308, \"dur\": 1e308, \"pid\": -1}]}"s,
      "{\"traceEvents\": [], \"otherData\": {\"format\": \"pipewright/timeline/1\", \"name\": \"\", \"ranks\": 2000000000, \"length_s\": 1}}"s,
      "{\"pipeline\": {}}"s,
      "{\"pipeline\": {\"ranks\": 1e18}}"s,
      "{\"format\": \"pipewright/program/1\"}"s,
      "{\"format\": \"pipewright/scenario/99\", \"pipeline\": {}}"s,
      std::string(100'000, '['),
      std::string(100'000, '{'),
      std::string(4096, '\0')};
  return texts;
}

TEST_CASE("Foreign files are rejected with a reason", "[gui][document]") {
  const test::TempFolder folder;
  for (const std::string& text : foreign_texts()) {
    CAPTURE(text.substr(0, 60));
    const Document document = gui::open_document(folder.write("file.json", text));
    check_opened(document);
    CHECK(!document.problems.empty());
  }
}

TEST_CASE("A file truncated at any byte is reported with the position", "[gui][document]") {
  const test::TempFolder folder;
  for (const fs::path& file : files_of_run()) {
    const std::string text = text_of(file);
    for (std::size_t part = 0; part < 24; ++part) {
      const std::size_t size = text.size() * part / 24;
      CAPTURE(file.filename().string(), size);
      const Document document =
          gui::open_document(folder.write(file.filename().string(), text.substr(0, size)));
      check_opened(document);
      REQUIRE(!document.problems.empty());
      CHECK(document.problems.front().find(file.filename().string()) != std::string::npos);
    }
  }
}

TEST_CASE("Hundreds of slightly damaged files are opened or rejected", "[gui][document]") {
  const test::TempFolder folder;
  for (const fs::path& file : files_of_run()) {
    fuzz::Mutator mutator({text_of(file)});
    for (int round = 0; round < 60; ++round) {
      const Document document =
          gui::open_document(folder.write(file.filename().string(), mutator.next()));
      check_opened(document);
    }
  }
}

TEST_CASE("A run with one damaged file can be opened and explored", "[gui][document]") {
  const test::TempFolder folder;
  for (const fs::path& file : files_of_run())
    fs::copy(file, folder.path() / file.filename());
  gui::MainWindow window;
  window.resize(800, 500);
  window.show();
  for (const fs::path& file : files_of_run()) {
    const std::string right = text_of(file);
    fuzz::Mutator mutator({right});
    for (int round = 0; round < 12; ++round) {
      folder.write(file.filename().string(), mutator.next());
      window.open(folder.path());
      check_opened(window.workspace().document());
      look_around(window);
    }
    folder.write(file.filename().string(), right);
  }
  window.open(folder.path());
  CHECK(window.workspace().document().problems.empty());
}

TEST_CASE("Foreign files do not break the window", "[gui][document]") {
  const test::TempFolder folder;
  gui::MainWindow window;
  window.show();
  for (const std::string& text : foreign_texts()) {
    window.open(folder.write("file.json", text));
    CHECK(!window.workspace().document().problems.empty());
    look_around(window);
  }
  window.open(folder.path() / "is not there");
  window.open(folder.path());  // a folder without a run
  look_around(window);
  CHECK(!window.workspace().document().problems.empty());
}

}  // namespace bad_files_test
