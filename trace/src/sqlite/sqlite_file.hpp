#pragma once

// Reads tables by name from an SQLite database of another program. Only this class uses SQLite.

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

/// The current row. Its texts are valid until the next row.
class SqliteRow {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}
  /// Returns nothing for NULL. A text counts as the number with which it begins, as in SQLite.
  std::optional<std::int64_t> number(int column) const;
  std::optional<std::string_view> text(int column) const;

 private:
  sqlite3_stmt* statement_;
};

class SqliteFile {
 public:
  /// Throws InputError that names the file if it cannot be opened.
  explicit SqliteFile(const std::filesystem::path& file);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  /// Views and virtual tables do not count, because their contents are computed.
  bool has_table(const std::string& table) const;
  bool has_column(const std::string& table, const std::string& column) const;

  /// Calls `take` with every row of a table, in file order. Throws InputError that names file,
  /// table and column if one is missing, and includes SQLite's message if the file is damaged.
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

/// Returns true if the file begins like an SQLite database.
bool is_sqlite_file(const std::filesystem::path& file);

}  // namespace pipewright::trace
