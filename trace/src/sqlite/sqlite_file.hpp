#pragma once

// An SQLite database that somebody else wrote: opened to be read, its tables asked for by name. The
// one place that knows SQLite.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3_stmt;

namespace pipewright::trace {

/// The row that is being read. Texts are good as long as it is.
class SqliteRow {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}
  /// Nothing for NULL. A text is the number that it begins with, as SQLite has it.
  std::optional<std::int64_t> number(int column) const;
  std::optional<std::string_view> text(int column) const;

 private:
  sqlite3_stmt* statement_;
};

class SqliteFile {
 public:
  /// Throws InputError that names the file where it cannot be opened.
  explicit SqliteFile(const std::filesystem::path& file);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  /// Views and virtual tables are none: what they hold is computed.
  bool has_table(const std::string& table) const;
  bool has_column(const std::string& table, const std::string& column) const;

  /// Calls `take` with every row of a table, in the order of the file. Throws InputError that names
  /// file, table and column where one is missing, and what SQLite says of a file that is damaged.
  using Take = std::function<void(const SqliteRow& row)>;
  void read(const std::string& table, const std::vector<std::string>& columns,
            const Take& take) const;

 private:
  struct Connection;
  [[noreturn]] void refuse(const std::string& what) const;
  std::vector<std::string> columns_of(const std::string& table) const;

  std::string name_;
  std::uintmax_t size_ = 0;
  std::unique_ptr<Connection> connection_;
};

/// Whether its first letters are those of an SQLite database.
bool is_sqlite_file(const std::filesystem::path& file);

}  // namespace pipewright::trace
