#include "pipewright/plan/generators/schedule_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "custom_program.hpp"
#include "custom_schedule.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/lower/program_csv.hpp"

namespace pipewright::plan {
namespace {

// Enough for a rank with millions of actions. A larger file is certainly no schedule.
constexpr std::uintmax_t most_bytes = std::uintmax_t{1} << 30;

/// Reads a file. Rejects what is not a regular file, such as /dev/zero, because it may be
/// unlimited.
std::string read_text(const std::filesystem::path& file) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(file, failure))
    throw InputError(fmt::format("{}: there is no such file", file.string()));
  if (std::filesystem::file_size(file, failure) > most_bytes)
    throw InputError(fmt::format("{}: is larger than any schedule", file.string()));
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (stream)
    text << stream.rdbuf();
  if (!stream)
    throw InputError(fmt::format("{}: cannot be read", file.string()));
  return std::move(text).str();
}

bool is_json(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && (text[first] == '{' || text[first] == '[');
}

ScheduleDescriptor read_program(const std::string& text, const std::string& file) {
  auto document = std::make_shared<const JsonDocument>(JsonDocument::parse(text, file));
  Program program = program_from_json(*document);
  Diagnostics diagnostics(*document);
  try {
    require_runnable(program);
  } catch (const InputError& unsound) {
    diagnostics.add_lines("/ranks", unsound.what());
  }
  diagnostics.throw_if_any();
  return custom_program(std::move(program), file, std::move(document));
}

ScheduleDescriptor read_csv(const std::string& text, const std::string& file) {
  if (!has_communication(text)) {
    Schedule order = parse_csv(text, file);
    require_sound(file, [&] { require_runnable(order); });
    return custom_schedule(std::move(order), file);
  }
  Program program;
  require_sound(file, [&] {
    program = transfers_from_csv(text, file);
    require_runnable(with_transfers_of(program, {}));
  });
  return own_transfers(std::move(program), file);
}

}  // namespace

bool names_schedule_file(std::string_view text) {
  return text.find_first_of("./") != std::string_view::npos;
}

bool has_communication(std::string_view text) {
  for (const char* word : {"SEND_", "RECV_", "REDUCE_GRAD", "SHARD"})
    if (text.find(word) != std::string_view::npos)
      return true;
  return false;
}

ScheduleChoice schedule_from_text(const std::string& text, const std::string& file) {
  ScheduleDescriptor read = is_json(text) ? read_program(text, file) : read_csv(text, file);
  read.text = text;
  ScheduleChoice choice(file);
  choice.own = std::make_shared<const ScheduleDescriptor>(std::move(read));
  return choice;
}

ScheduleChoice schedule_from_file(const std::filesystem::path& file) {
  return schedule_from_text(read_text(file), file.string());
}

}  // namespace pipewright::plan
