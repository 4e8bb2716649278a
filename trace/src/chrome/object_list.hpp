#pragma once

// Finds the objects of a JSON list without reading them: 64 bytes at a time, without a branch for
// each. Whatever the objects hold, those that come after one that is damaged are found again.
//
// simdjson reads what is found, and cannot find it: it wants the whole text in memory (its streams
// of documents know no commas between them), and of what comes behind a damaged object it gives
// nothing. `pipewright_bench_trace_scanner` reads 350 MB of a trace both ways by turns: as a whole
// by simdjson alone in 0.95 of the time, with 630 MB more memory instead of 11 MB, and only up to a
// damaged event.

#include <cstdint>
#include <optional>
#include <vector>

#include "chrome/text_window.hpp"

namespace pipewright::trace {

class ObjectList {
 public:
  /// The window stands behind the opening bracket of the list.
  explicit ObjectList(TextWindow& window) : window_(window) {}

  /// Bytes of the window's data.
  struct Place {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  /// The next objects that lie in the window whole; none when the list or the text has ended. The
  /// places hold until the next call.
  const std::vector<Place>& next();

  /// Whether the list's own closing bracket was found; the window then stands behind it.
  bool closed() const { return closed_; }
  /// Whether the text ended within an object, which began there.
  std::optional<std::uint64_t> unfinished() const;

  /// Where an object was given up since the last call of next(), and why.
  struct Fault {
    std::uint64_t offset = 0;
    const char* why = "";
  };
  const std::vector<Fault>& faults() const { return faults_; }

 private:
  void drop_read();
  void scan(std::size_t end);
  std::size_t scan_block(std::size_t at);
  std::size_t find_object(std::size_t at, std::size_t end);
  std::optional<std::size_t> take_brackets(std::uint64_t brackets, std::uint64_t opening,
                                           std::size_t at);
  void give_up(const char* why);

  TextWindow& window_;
  std::vector<Place> found_;
  std::vector<Fault> faults_;
  std::size_t scanned_ = 0;  // bytes of the window
  std::size_t begin_ = 0;    // of the object that was begun
  int depth_ = 0;
  bool closed_ = false;
  bool lost_ = false;          // one was given up: a line that begins with the next is looked for
  bool line_is_blank_ = true;  // so far, while lost
  std::uint64_t in_text_ = 0;  // all ones between quotes
  std::uint64_t escaped_ = 0;  // 1 where the first byte of a block is behind a backslash
};

}  // namespace pipewright::trace
