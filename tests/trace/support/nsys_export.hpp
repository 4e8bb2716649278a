// Writes synthetic exports of Nsight Systems: SQLite in the schema that NVIDIA describes, from SQL
// or from the events of a Kineto trace.
#pragma once

#include <fmt/format.h>
#include <sqlite3.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace pipewright::test {

class NsysExport {
 public:
  explicit NsysExport(const std::filesystem::path& file) : file_(file) {
    std::filesystem::remove(file);
    if (sqlite3_open(file.c_str(), &database_) != SQLITE_OK)
      throw std::runtime_error(sqlite3_errmsg(database_));
    sql("BEGIN");
    sql("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)");
    sql("CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT "
        "NULL, rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, "
        "endGlobalTid INTEGER, textId INTEGER, domainId INTEGER)");
    sql("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, "
        "eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT "
        "NULL, returnValue INTEGER NOT NULL)");
    sql("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, "
        "deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, "
        "correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName "
        "INTEGER NOT NULL, graphNodeId INTEGER)");
    sql("CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER)");
  }
  ~NsysExport() { sqlite3_close(database_); }
  NsysExport(const NsysExport&) = delete;
  NsysExport& operator=(const NsysExport&) = delete;

  void sql(const std::string& text) {
    if (sqlite3_exec(database_, text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
      throw std::runtime_error(sqlite3_errmsg(database_));
  }
  void session(std::int64_t utc_ns) {
    sql(fmt::format("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES ({})", utc_ns));
  }
  void range(const std::string& name, std::int64_t start, std::int64_t end, int process = 7,
             int thread = 7) {
    sql(
        fmt::format("INSERT INTO NVTX_EVENTS (start, end, eventType, globalTid, textId) VALUES "
                    "({}, {}, 59, {}, {})",
                    start, end, global(process) + thread, id_of(name)));
  }
  void launch(int correlation, std::int64_t time, int process = 7,
              const std::string& call = "cudaLaunchKernel_v7000") {
    sql(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, 0, {}, {}, {}, 0)",
                    time, time + 1000, global(process) + 7, correlation, id_of(call)));
  }
  void kernel(int correlation, std::int64_t start, std::int64_t end, int process = 7,
              const std::string& name = "gemm", int device = 0) {
    const int id = id_of(name);
    sql(fmt::format(
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, {}, 1, 7, {}, {}, {}, {}, NULL)",
        start, end, device, correlation, global(process), id, id));
  }
  std::filesystem::path done() {
    sql("COMMIT");
    return file_;
  }

  /// Serialized as nsys does: the process number above 24 bits for the thread.
  static std::int64_t global(int process) {
    return (std::int64_t{1} << 48) + (std::int64_t{process} << 24);
  }

 private:
  int id_of(const std::string& text) {
    const auto [known, is_new] = ids_.try_emplace(text, static_cast<int>(ids_.size()) + 1);
    if (is_new)
      sql(fmt::format("INSERT INTO StringIds VALUES ({}, '{}')", known->second, text));
    return known->second;
  }

  std::filesystem::path file_;
  sqlite3* database_ = nullptr;
  std::map<std::string, int> ids_;
};

/// Adds the run of a Kineto trace to an export, which may contain other processes as well.
/// Operators have the names of torch's emit_nvtx, and arrows become the operators' sequence
/// numbers.
inline void add_kineto(NsysExport& nsys, const std::string& kineto, int process = 7) {
  const auto trace = nlohmann::json::parse(kineto);
  const auto ns = [](const nlohmann::json& us) {
    return static_cast<std::int64_t>(std::llround(us.get<double>() * 1e3));
  };
  struct Engine {
    std::int64_t start = 0, end = 0;
    std::string name;
  };
  std::vector<Engine> engines;
  const std::string mark = "autograd::engine::evaluate_function: ";
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X") {
      const std::int64_t start = ns(event["ts"]), end = start + ns(event["dur"]);
      const std::string name = event["name"];
      if (event["cat"] == "cpu_op" || event["cat"] == "user_annotation")
        nsys.range(name, start, end, process);
      if (name.starts_with(mark))
        engines.push_back({start, end, name.substr(mark.size())});
      if (event["cat"] == "kernel")
        nsys.kernel(event["args"]["correlation"], start, end, process, name);
    } else if (event["cat"] == "ac2g" && event["ph"] == "s") {
      nsys.launch(event["id"], ns(event["ts"]), process);
    }
  for (const auto& event : trace["traceEvents"]) {
    if (event["cat"] != "fwdbwd")
      continue;
    const std::int64_t time = ns(event["ts"]);
    std::string name = "aten::mm";
    if (event["ph"] == "f")
      for (const Engine& engine : engines)
        if (engine.start <= time && time < engine.end)
          name = engine.name;
    nsys.range(fmt::format("{}, seq = {}, op_id = 1", name, event["id"].get<int>()), time, time,
               process);
  }
}

inline std::filesystem::path nsys_of(const std::filesystem::path& file, const std::string& kineto) {
  NsysExport nsys(file);
  add_kineto(nsys, kineto);
  nsys.session(nlohmann::json::parse(kineto)["baseTimeNanoseconds"]);
  return nsys.done();
}

}  // namespace pipewright::test
