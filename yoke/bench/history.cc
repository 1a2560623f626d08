#include "yoke/bench/history.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <charconv>
#include <cstdlib>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/file_lock.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"

namespace yoke::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kSchema = 2;       // 2: rows have what the plan predicted
constexpr int kBusyMs = 20'000;  // others write for milliseconds; this covers a disk that sleeps
constexpr const char* kTables =
    "CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, benchmark TEXT NOT "
    "NULL, host TEXT NOT NULL, processor TEXT NOT NULL, version TEXT NOT NULL, commit_hash TEXT NOT NULL, settings "
    "TEXT "
    "NOT NULL, summary TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS rows (run INTEGER NOT NULL REFERENCES runs (id), name TEXT NOT NULL, size INTEGER NOT "
    "NULL, value REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL, unit TEXT NOT NULL, predicted REAL);"
    "CREATE INDEX IF NOT EXISTS rows_of_run ON rows (run);";

// The one place where SQLite's codes become Errors. kInvalid is said of broken files only: see set_aside_broken().
Error database_error(sqlite3* database, int code, std::string_view what) {
  const std::string text = database ? sqlite3_errmsg(database) : sqlite3_errstr(code);
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {ErrorCode::kInvalid, fmt::format("the history is broken: {}", text)};
    case SQLITE_FULL:
      return {ErrorCode::kExhausted, fmt::format("cannot {}: the disk is full", what),
              "make room, or use --no-history"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::kConflict, fmt::format("cannot {}: another program holds the history", what), "try again"};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return {ErrorCode::kPermission, fmt::format("cannot {}: {}", what, text),
              "is the data folder writable? --no-history does without"};
    default:
      return {ErrorCode::kUnavailable, fmt::format("cannot {}: {}", what, text), "--no-history does without"};
  }
}

void run_sql(sqlite3* database, const char* sql, std::string_view what) {
  const int code = sqlite3_exec(database, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) throw database_error(database, code, what);
}

// A prepared statement: bind in order, then step through rows.
class Statement {
 public:
  Statement(sqlite3* database, const char* sql) : database_(database) {
    const int code = sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr);
    if (code != SQLITE_OK) throw database_error(database, code, "read the history");
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(const std::string& text) {
    sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& bind(std::int64_t number) {
    sqlite3_bind_int64(statement_, ++bound_, number);
    return *this;
  }
  Statement& bind(double number) {
    sqlite3_bind_double(statement_, ++bound_, number);
    return *this;
  }
  Statement& bind(const std::optional<double>& number) {
    if (number) return bind(*number);
    sqlite3_bind_null(statement_, ++bound_);
    return *this;
  }
  bool step() {
    const int code = sqlite3_step(statement_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) throw database_error(database_, code, "use the history");
    return code == SQLITE_ROW;
  }
  void reset() {
    sqlite3_reset(statement_);
    bound_ = 0;
  }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  double real(int column) const { return sqlite3_column_double(statement_, column); }
  std::string text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return bytes ? std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))) : "";
  }

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

// All or nothing: what is not committed is rolled back.
class Transaction {
 public:
  explicit Transaction(sqlite3* database) : database_(database) {
    run_sql(database, "BEGIN IMMEDIATE", "write the history");
  }
  ~Transaction() {
    if (!done_) sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() {
    run_sql(database_, "COMMIT", "write the history");
    done_ = true;
  }

 private:
  sqlite3* database_;
  bool done_ = false;
};

constexpr const char* kRunColumns =
    "SELECT id, time, benchmark, host, processor, version, commit_hash, settings, summary ";

RunRecord read_run(const Statement& row) {
  return {.id = row.integer(0),
          .time = row.text(1),
          .benchmark = row.text(2),
          .host = row.text(3),
          .processor = row.text(4),
          .version = row.text(5),
          .commit = row.text(6),
          .settings = row.text(7),
          .summary = row.text(8)};
}

}  // namespace

fs::path history_file() { return user_data_dir() / "bench-history.sqlite"; }

void History::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

History::Database History::open_checked(const fs::path& file) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  Database database(opened);  // also after a failure, as SQLite wants it
  if (code != SQLITE_OK) throw database_error(opened, code, fmt::format("open {}", file.native()));
  sqlite3_busy_timeout(opened, kBusyMs);
  std::int64_t schema = 0;
  {
    Statement version(opened, "PRAGMA user_version");
    if (version.step()) schema = version.integer(0);
    if (schema > kSchema)
      throw Error(ErrorCode::kUnsupported, fmt::format("{} was written by a newer yoke", file.native()),
                  "use that version, or move the file away");
    Statement check(opened, "PRAGMA quick_check(1)");
    if (check.step() && check.text(0) != "ok")
      throw Error(ErrorCode::kInvalid, fmt::format("the history is broken: {}", check.text(0)));
  }
  if (schema == kSchema) return database;
  Transaction transaction(opened);
  {
    Statement again(opened, "PRAGMA user_version");  // another program may have been quicker
    schema = again.step() ? again.integer(0) : 0;
  }
  if (schema == kSchema) return database;
  run_sql(opened, kTables, "make the history's tables");
  if (schema == 1) run_sql(opened, "ALTER TABLE rows ADD COLUMN predicted REAL", "extend the history's tables");
  run_sql(opened, fmt::format("PRAGMA user_version = {}", kSchema).c_str(), "make the history's tables");
  transaction.commit();
  return database;
}

History::History(fs::path file) : file_(std::move(file)) {
  try {
    database_ = open_checked(file_);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalid) throw;
    set_aside_broken();
  }
}

History::~History() = default;

// Under a lock of its own, for of several programs that find the file broken only the first may move it: the others
// then find its sound successor.
void History::set_aside_broken() {
  const FileLock lock(file_.native() + ".lock", {.busy = "another yoke is mending the history, and comes to no end",
                                                 .hint = "try again, or end it"});
  try {
    database_ = open_checked(file_);
    return;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalid) throw;
  }
  const std::string base = fmt::format("{}.corrupt-{}", file_.native(), utc_now());
  fs::path aside = base;
  for (int i = 1; fs::exists(aside); ++i) aside = fmt::format("{}.{}", base, i);
  fs::rename(file_, aside);
  std::error_code ignored;  // there may be none
  fs::rename(file_.native() + "-journal", aside.native() + "-journal", ignored);
  set_aside_ = fmt::format("the history {} was broken; it is now {}, and a new one begins", file_.native(),
                           aside.filename().native());
  database_ = open_checked(file_);
}

std::int64_t History::add(const RunRecord& record) {
  Transaction transaction(database_.get());
  Statement run(database_.get(),
                "INSERT INTO runs (time, benchmark, host, processor, version, commit_hash, settings, summary) VALUES "
                "(?, ?, ?, ?, ?, ?, ?, ?)");
  run.bind(record.time).bind(record.benchmark).bind(record.host).bind(record.processor).bind(record.version);
  run.bind(record.commit).bind(record.settings).bind(record.summary).step();
  const std::int64_t id = sqlite3_last_insert_rowid(database_.get());
  Statement insert(database_.get(),
                   "INSERT INTO rows (run, name, size, value, low, high, unit, predicted) VALUES (?, ?, ?, ?, ?, ?, ?, "
                   "?)");
  for (const RecordRow& row : record.rows) {
    insert.bind(id).bind(row.name).bind(row.size).bind(row.value).bind(row.low).bind(row.high).bind(row.unit);
    insert.bind(row.predicted).step();
    insert.reset();
  }
  transaction.commit();
  return id;
}

void History::load_rows(RunRecord& record) const {
  Statement query(database_.get(),
                  "SELECT name, size, value, low, high, unit, predicted FROM rows WHERE run = ? ORDER BY rowid");
  query.bind(record.id);
  while (query.step()) {
    record.rows.push_back({.name = query.text(0),
                           .size = query.integer(1),
                           .value = query.real(2),
                           .low = query.real(3),
                           .high = query.real(4),
                           .unit = query.text(5),
                           .predicted = query.is_null(6) ? std::nullopt : std::optional(query.real(6))});
  }
}

std::vector<RunRecord> History::recent(int limit) const {
  std::vector<RunRecord> records;
  Statement query(database_.get(), (std::string(kRunColumns) + "FROM runs ORDER BY id DESC LIMIT ?").c_str());
  query.bind(std::int64_t{limit});
  while (query.step()) records.push_back(read_run(query));
  for (RunRecord& record : records) load_rows(record);
  return records;
}

RunRecord History::find(const std::string& name) const {
  const bool from_end = name == "last" || name.starts_with("last-");
  const std::string digits = name == "last" ? "0" : from_end ? name.substr(5) : name;
  std::int64_t number = -1;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failure != std::errc{} || end != digits.data() + digits.size() || number < 0)
    throw Error(ErrorCode::kUsage, fmt::format("'{}' names no run", printable(name, 40)),
                "a run is a number of 'yoke bench history', or last, last-1, …");
  Statement query(database_.get(), (std::string(kRunColumns) + (from_end ? "FROM runs ORDER BY id DESC LIMIT 1 OFFSET ?"
                                                                         : "FROM runs WHERE id = ?"))
                                       .c_str());
  query.bind(number);
  if (!query.step())
    throw Error(ErrorCode::kNotFound, fmt::format("the history has no run '{}'", name),
                "'yoke bench history' lists the runs");
  RunRecord record = read_run(query);
  load_rows(record);
  return record;
}

StoredRun keep_record(const RunRecord& record, const fs::path& file) {
  StoredRun kept;
  try {
    History history(file);
    if (history.set_aside()) kept.warnings.push_back(*history.set_aside());
    kept.id = history.add(record);
  } catch (const Error& error) {
    kept.warnings.push_back(fmt::format("not in the history: {}", error.message()));
  } catch (const fs::filesystem_error& error) {
    kept.warnings.push_back(fmt::format("not in the history: {}", error.what()));
  }
  return kept;
}

std::vector<std::string> keep_record(const RunRecord& record) {
  try {
    if (const char* hand_over = std::getenv(kRecordHandOver); hand_over && *hand_over) {
      // A file in memory that the command outside the lab holds open.
      const UniqueFd file(open(hand_over, O_WRONLY | O_TRUNC | O_CLOEXEC));
      if (!file) throw system_error(errno, "cannot hand the record over");
      write_all(file, print_json(to_json(record)), "the record");
      return {};
    }
    return keep_record(record, history_file()).warnings;
  } catch (const Error& error) {  // the data folder itself
    return {fmt::format("not in the history: {}", error.message())};
  }
}

}  // namespace yoke::bench
