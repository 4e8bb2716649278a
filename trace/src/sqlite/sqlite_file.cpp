#include "sqlite/sqlite_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "pipewright/plan/error.hpp"

namespace pipewright::trace {
namespace {

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using SqliteStatement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

/// With `immutable`, SQLite looks for neither lock nor journal: an export is complete.
std::string uri_of(const std::filesystem::path& file) {
  std::string uri = "file:";
  for (const char letter : std::filesystem::absolute(file).string())
    if (letter == '?' || letter == '#' || letter == '%')
      uri += fmt::format("%{:02X}", static_cast<int>(letter));
    else
      uri += letter;
  return uri + "?immutable=1";
}

/// The names of tables and columns are constants of Pipewright and contain no quotes.
std::string in_sql(const std::string& name) { return '"' + name + '"'; }

}  // namespace

std::optional<std::int64_t> SqliteRow::number(int column) const {
  if (sqlite3_column_type(statement_, column) == SQLITE_NULL)
    return {};
  return sqlite3_column_int64(statement_, column);
}

std::optional<std::string_view> SqliteRow::text(int column) const {
  const auto* const letters = sqlite3_column_text(statement_, column);
  if (letters == nullptr)
    return {};
  return std::string_view(reinterpret_cast<const char*>(letters),
                          static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
}

struct SqliteFile::Connection {
  sqlite3* handle = nullptr;
  ~Connection() { sqlite3_close(handle); }

  /// Returns null if SQLite rejects the query.
  SqliteStatement prepare(const std::string& query) const {
    sqlite3_stmt* statement = nullptr;
    sqlite3_prepare_v2(handle, query.c_str(), -1, &statement, nullptr);
    return SqliteStatement(statement);
  }
};

SqliteFile::SqliteFile(const std::filesystem::path& file)
    : name_(file.string()), connection_(std::make_unique<Connection>()) {
  std::error_code error;
  size_ = std::filesystem::file_size(file, error);
  if (error)
    throw plan::InputError(fmt::format("{}: {}", name_, error.message()));
  if (!is_sqlite_file(file))
    refuse("not an SQLite database, which begins with \"SQLite format 3\"");
  if (sqlite3_open_v2(uri_of(file).c_str(), &connection_->handle,
                      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr) != SQLITE_OK)
    refuse(fmt::format("cannot be opened as an SQLite database: {}",
                       sqlite3_errmsg(connection_->handle)));
  sqlite3_db_config(connection_->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  // Reads the catalog here, so that a damaged one is not reported as a missing table.
  const auto tables = connection_->prepare("SELECT count(*) FROM sqlite_master");
  if (tables == nullptr || sqlite3_step(tables.get()) != SQLITE_ROW)
    refuse(fmt::format("damaged SQLite database: {}", sqlite3_errmsg(connection_->handle)));
}

SqliteFile::~SqliteFile() = default;

void SqliteFile::refuse(const std::string& what) const {
  throw plan::InputError(fmt::format("{}: {}", name_, what));
}

bool SqliteFile::has_table(const std::string& table) const {
  const auto found = connection_->prepare(
      "SELECT 1 FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name = ?1");
  if (found == nullptr)
    return false;
  sqlite3_bind_text(found.get(), 1, table.c_str(), -1, SQLITE_TRANSIENT);
  return sqlite3_step(found.get()) == SQLITE_ROW;
}

std::vector<std::string> SqliteFile::columns_of(const std::string& table) const {
  std::vector<std::string> columns;
  const auto info = connection_->prepare(fmt::format("PRAGMA table_info({})", in_sql(table)));
  while (info != nullptr && sqlite3_step(info.get()) == SQLITE_ROW)
    columns.emplace_back(SqliteRow(info.get()).text(1).value_or(""));
  return columns;
}

bool SqliteFile::has_column(const std::string& table, const std::string& column) const {
  const auto columns = columns_of(table);
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

void SqliteFile::read(const std::string& table, const std::vector<std::string>& columns,
                      const Take& take) const {
  if (!has_table(table))
    refuse(fmt::format("it has no table {}", table));
  std::vector<std::string> names;
  for (const std::string& column : columns) {
    if (!has_column(table, column))
      refuse(fmt::format("table {} has no column {}; it has {}", table, column,
                         fmt::join(columns_of(table), ", ")));
    names.push_back(in_sql(column));
  }
  const auto rows =
      connection_->prepare(fmt::format("SELECT {} FROM {}", fmt::join(names, ", "), in_sql(table)));
  if (rows == nullptr)
    refuse(fmt::format("table {} cannot be read: {}", table, sqlite3_errmsg(connection_->handle)));
  // Pages that refer to each other in a cycle would give rows forever.
  std::uintmax_t left = size_;
  int state = SQLITE_ROW;
  for (; (state = sqlite3_step(rows.get())) == SQLITE_ROW; --left) {
    if (left == 0)
      refuse(fmt::format("table {} has more rows than the file has bytes: it is damaged", table));
    take(SqliteRow(rows.get()));
  }
  if (state != SQLITE_DONE)
    refuse(fmt::format("table {} is damaged or truncated: {}", table,
                       sqlite3_errmsg(connection_->handle)));
}

bool is_sqlite_file(const std::filesystem::path& file) {
  constexpr std::string_view mark("SQLite format 3\0", 16);
  std::array<char, 16> begin{};
  std::ifstream stream(file, std::ios::binary);
  return stream.read(begin.data(), begin.size()) &&
         std::string_view(begin.data(), begin.size()) == mark;
}

}  // namespace pipewright::trace
