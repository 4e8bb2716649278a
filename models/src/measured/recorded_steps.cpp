#include "pipewright/models/measured/recorded_steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "csv_table.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::models {
namespace {

constexpr std::array<const char*, 5> record_columns{"step", "replica", "rank", "action", "seconds"};
constexpr int most_number = 1'000'000'000;
constexpr double most_seconds = 1e9;  // thirty years: small enough that durations can be summed
constexpr auto not_recorded = std::numeric_limits<double>::quiet_NaN();

template <class Number>
std::optional<Number> parsed_number(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return {};
  return number;
}

/// One line of the table.
struct RecordLine {
  int line = 0;
  int step = 0;
  RecordedOperation operation;  // its seconds are empty
  double seconds = 0;
};

class RecordReader {
 public:
  explicit RecordReader(const std::string& name) : name_(name) {}

  RecordedSteps read(std::string_view csv) {
    const auto lines = csv_lines(csv, name_, faults_);
    read_header(lines);
    for (std::size_t at = 1; at < lines.size(); ++at)
      read_line(lines[at]);
    if (lines_.empty() && faults_.empty())
      faults_.push_back(name_ + ": has a header and no operations");
    throw_if_any();
    RecordedSteps record = table();
    throw_if_any();
    return record;
  }

 private:
  using Key = std::tuple<int, int, plan::InstructionKey>;
  static Key key_of(const RecordedOperation& operation) {
    return {operation.replica, operation.rank, plan::key_of(operation.instruction)};
  }

  void read_header(const std::vector<CsvLine>& lines) {
    std::vector<std::string> found;
    if (!lines.empty())
      for (const CsvCell& cell : lines.front().cells)
        found.push_back(cell.text);
    if (!std::equal(found.begin(), found.end(), record_columns.begin(), record_columns.end()))
      faults_.push_back(
          fmt::format("{}:1:1: the first line must be {}", name_, fmt::join(record_columns, ",")));
    throw_if_any();
  }

  void read_line(const CsvLine& line) {
    if (line.cells.size() != record_columns.size())
      return fault(
          line.line, 1,
          fmt::format("{} cells, but the header has {}", line.cells.size(), record_columns.size()));
    RecordLine read{.line = line.line, .step = whole(line, 0), .operation = {}, .seconds = 0};
    read.operation.replica = whole(line, 1);
    read.operation.rank = whole(line, 2);
    const auto instruction = plan::parse_instruction(line.cells[3].text);
    if (instruction)
      read.operation.instruction = *instruction;
    else
      refuse(line, 3, "an instruction is needed, such as 2F0 or 2STEP");
    const auto seconds = parsed_number<double>(line.cells[4].text);
    if (seconds && *seconds >= 0 && *seconds <= most_seconds)
      read.seconds = *seconds;
    else
      refuse(line, 4, "a number from 0 to 1e9 is needed");
    lines_.push_back(std::move(read));
  }

  int whole(const CsvLine& line, std::size_t column) {
    const auto number = parsed_number<int>(line.cells[column].text);
    if (number && *number >= 0 && *number <= most_number)
      return *number;
    refuse(line, column, "a whole number from 0 to 1e9 is needed");
    return 0;
  }

  /// Returns the operations in order, each with one duration per step.
  RecordedSteps table() {
    RecordedSteps record;
    for (const RecordLine& line : lines_)
      record.numbers.push_back(line.step);
    std::sort(record.numbers.begin(), record.numbers.end());
    record.numbers.erase(std::unique(record.numbers.begin(), record.numbers.end()),
                         record.numbers.end());
    std::map<Key, RecordedOperation> operations;
    for (const RecordLine& line : lines_)
      add(line, record, operations);
    for (auto& [key, operation] : operations) {
      require_whole(operation, record);
      record.operations.push_back(std::move(operation));
    }
    return record;
  }

  void add(const RecordLine& line, const RecordedSteps& record,
           std::map<Key, RecordedOperation>& operations) {
    RecordedOperation& operation = operations[key_of(line.operation)];
    if (operation.seconds.empty()) {
      operation = line.operation;
      operation.seconds.assign(record.steps(), not_recorded);
    }
    const auto step = std::lower_bound(record.numbers.begin(), record.numbers.end(), line.step);
    double& seconds = operation.seconds[static_cast<std::size_t>(step - record.numbers.begin())];
    if (!std::isnan(seconds))
      fault(line.line, 1,
            fmt::format("step {} of {} appears twice", line.step, words_of(operation)));
    seconds = line.seconds;
  }

  void require_whole(const RecordedOperation& operation, const RecordedSteps& record) {
    const auto missing = std::find_if(operation.seconds.begin(), operation.seconds.end(),
                                      [](double seconds) { return std::isnan(seconds); });
    if (missing != operation.seconds.end())
      faults_.push_back(fmt::format(
          "{}: {} has no line for step {}, which others have", name_, words_of(operation),
          record.numbers[static_cast<std::size_t>(missing - operation.seconds.begin())]));
  }

  static std::string words_of(const RecordedOperation& operation) {
    return fmt::format("{} of rank {} of replica {}", to_string(operation.instruction),
                       operation.rank, operation.replica);
  }

  void refuse(const CsvLine& line, std::size_t column, const char* wanted) {
    fault(line.line, line.cells[column].column,
          fmt::format("{} is \"{}\": {}", record_columns[column], line.cells[column].text, wanted));
  }
  void fault(int line, int column, const std::string& message) {
    faults_.push_back(fmt::format("{}:{}:{}: {}", name_, line, column, message));
  }
  void throw_if_any() const {
    if (!faults_.empty())
      throw plan::InputError(plan::listed_lines(faults_));
  }

  const std::string& name_;
  std::vector<RecordLine> lines_;
  std::vector<std::string> faults_;
};

}  // namespace

RecordedSteps read_recorded_steps(std::string_view csv, const std::string& name) {
  return RecordReader(name).read(csv);
}

RecordedSteps read_recorded_steps(const std::filesystem::path& file) {
  return read_recorded_steps(plan::read_file(file), file.string());
}

std::string to_csv(const RecordedSteps& record) {
  std::string text = fmt::format("{}\n", fmt::join(record_columns, ","));
  for (std::size_t step = 0; step < record.steps(); ++step)
    for (const RecordedOperation& operation : record.operations)
      fmt::format_to(std::back_inserter(text), "{},{},{},{},{}\n", record.numbers[step],
                     operation.replica, operation.rank, to_string(operation.instruction),
                     operation.seconds[step]);
  return text;
}

}  // namespace pipewright::models
