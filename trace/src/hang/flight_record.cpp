#include "pipewright/trace/hang/flight_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "hang/json_nodes.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::trace {
namespace {

using plan::PickleNode;
using NodeKind = PickleNode::Kind;

constexpr std::size_t longest_text = 120;  // of sizes and places, which messages repeat
constexpr int most_ranks = 1'000'000;

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0)
    return {};
  return value;
}

/// Parses ranks such as "[0, 1, 2]".
std::optional<std::vector<int>> ranks_in(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']')
    return {};
  text = text.substr(1, text.size() - 2);
  std::vector<int> ranks;
  while (!text.empty()) {
    const auto comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    while (word.starts_with(' '))
      word.remove_prefix(1);
    const auto rank = whole_number(word);
    if (!rank || *rank >= most_ranks)
      return {};
    ranks.push_back(*rank);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return ranks;
}

std::string cut_short(std::string text) {
  if (text.size() > longest_text) {
    text.resize(longest_text);
    text += "…";
  }
  return text;
}

/// Returns the name of a file without its folders.
std::string_view base_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_of_torch(std::string_view file) {
  return file.find("-packages/torch/") != std::string_view::npos ||
         file.find("/torch/distributed/") != std::string_view::npos;
}

/// Reads one dump and collects its errors.
class FlightReader {
 public:
  FlightReader(const PickleNode& root, std::size_t length, const std::string& file, int rank)
      : file_(file), visits_left_(64 * length + 1'000'000) {
    record_.rank = rank;
    record_.file = file;
    if (!root.is(NodeKind::Dict) || root.find("pg_config") == nullptr) {
      fault("", "is not a dump of torch's FlightRecorder: a dictionary with pg_config and entries");
      return;
    }
    read_groups(*root.find("pg_config"));
    const PickleNode* const entries = root.find("entries");  // absent in JSON without entries
    if (entries != nullptr && !entries->is(NodeKind::List))
      fault("/entries", "must be a list");
    else if (entries != nullptr)
      for (std::size_t at = 0; at < entries->items.size() && faults_.size() < 50; ++at)
        read_entry(*entries->items[at], fmt::format("/entries/{}", at));
    if (const PickleNode* const status = root.find("pg_status"); status != nullptr)
      read_status(*status);
  }

  FlightRecord record() && {
    if (!faults_.empty())
      throw plan::MalformedFile(plan::listed_lines(faults_));
    return std::move(record_);
  }

 private:
  struct Entry {
    std::string name;  // "nccl:send 0->1"
    int group = 0;
    bool is_p2p = false;
    std::int64_t sequence = 0;
    std::size_t operation = 0;  // index of the resulting operation
  };

  void fault(const std::string& field, const std::string& what) {
    faults_.push_back(fmt::format("{}: {}{}{}", file_, field, field.empty() ? "" : ": ", what));
  }
  /// Limits the number of visits: a pickle may refer to one value any number of times.
  bool may_visit() {
    if (visits_left_ > 0)
      --visits_left_;
    else if (!was_endless_) {
      was_endless_ = true;
      fault("", "refers to the same values too often");
    }
    return !was_endless_;
  }

  const PickleNode* want(const PickleNode& entry, const char* key, NodeKind kind,
                         const std::string& where, const char* what) {
    const PickleNode* const value = entry.find(key);
    if (value != nullptr && value->is(kind))
      return value;
    fault(where + "/" + key,
          fmt::format("{} is {}", what, value == nullptr ? "missing" : "needed"));
    return nullptr;
  }

  void read_groups(const PickleNode& config) {
    if (!config.is(NodeKind::Dict)) {
      fault("/pg_config", "must be a dictionary");
      return;
    }
    for (std::size_t at = 0; at + 1 < config.items.size() && may_visit(); at += 2) {
      const std::string where = "/pg_config/" + cut_short(config.items[at]->text);
      const PickleNode& group = *config.items[at + 1];
      const PickleNode* const ranks =
          want(group, "ranks", NodeKind::Text, where, "a list of ranks");
      const auto members = ranks == nullptr ? std::nullopt : ranks_in(ranks->text);
      if (ranks != nullptr && !members)
        fault(where + "/ranks", fmt::format("\"{}\" is not a list of ranks, such as \"[0, 1]\"",
                                            cut_short(ranks->text)));
      const PickleNode* const description = group.find("desc");
      record_.groups.push_back({config.items[at]->text,
                                description == nullptr ? "" : description->text,
                                members.value_or(std::vector<int>())});
    }
  }

  /// Reads the last complete collective of each group. The status has the process's own numbers of
  /// its groups (pg_id). Groups are created in one order, so that these ascend with the names,
  /// which count the groups of the job. Unless names and entries agree with that, nothing is read.
  void read_status(const PickleNode& status) {
    std::map<int, std::size_t> by_name;
    for (std::size_t at = 0; at < record_.groups.size(); ++at)
      if (const auto number = whole_number(record_.groups[at].name))
        by_name[*number] = at;
    std::map<std::int64_t, std::int64_t> completed;  // by pg_id
    for (std::size_t at = 0; at + 1 < status.items.size() && may_visit(); at += 2) {
      const auto id = whole_number(status.items[at]->text);
      const PickleNode* const last = status.items[at + 1]->find("last_completed_collective");
      if (id && last != nullptr && last->is(NodeKind::Integer))
        completed[*id] = last->integer;
    }
    if (!status.is(NodeKind::Dict) || by_name.size() != record_.groups.size() ||
        completed.size() != by_name.size())
      return;
    std::map<std::int64_t, std::size_t> groups;  // by pg_id
    auto name = by_name.begin();
    for (const auto& [id, last] : completed)
      groups[id] = (name++)->second;
    for (const auto& [id, group] : group_ids_)
      if (const auto found = groups.find(id); found == groups.end() || found->second != group)
        return;
    for (const auto& [id, group] : groups)
      record_.groups[group].last_completed = completed.at(id);
  }

  /// Returns the group by name, or the only group if torch has written another name (as with Gloo).
  int group_of(const PickleNode& entry, const std::string& where) {
    const PickleNode* const group = entry.find("process_group");
    const bool has_name = group != nullptr && group->is(NodeKind::List) && !group->items.empty() &&
                          group->items[0]->is(NodeKind::Text);
    if (!has_name) {
      fault(where + "/process_group", "name and description of a group are needed");
      return 0;
    }
    const std::string& name = group->items[0]->text;
    for (std::size_t at = 0; at < record_.groups.size(); ++at)
      if (record_.groups[at].name == name)
        return static_cast<int>(at);
    if (record_.groups.size() == 1) {
      if (record_.groups[0].name.empty())
        record_.groups[0] = {cut_short(name),
                             group->items.size() > 1 ? cut_short(group->items[1]->text) : "",
                             record_.groups[0].ranks};
      return 0;
    }
    fault(where + "/process_group",
          fmt::format("group \"{}\" is not in pg_config", cut_short(name)));
    return 0;
  }

  std::int64_t dimensions(const PickleNode& sizes, std::string& text) {
    double product = 1;
    text += "[";
    for (const PickleNode* const size : sizes.items) {
      if (!may_visit() || !size->is(NodeKind::Integer))
        break;
      product *= static_cast<double>(size->integer);
      if (text.size() <= longest_text)
        text += fmt::format("{}{}", text.ends_with('[') ? "" : ", ", size->integer);
    }
    text += "]";
    return static_cast<std::int64_t>(std::clamp(product, 0.0, 1e15));
  }
  FlightTensors tensors(const PickleNode& entry, const char* sizes, const char* types) {
    FlightTensors found;
    std::set<std::string> words;
    if (const PickleNode* const lists = entry.find(sizes); lists != nullptr)
      for (const PickleNode* const list : lists->items) {
        if (!may_visit() || found.numbers > std::int64_t{1} << 60)
          break;
        std::string text;
        found.numbers += dimensions(*list, text);
        if (found.sizes.size() <= longest_text)
          found.sizes += (found.sizes.empty() ? "" : ", ") + text;
      }
    if (const PickleNode* const list = entry.find(types); list != nullptr)
      for (const PickleNode* const type : list->items)
        if (may_visit() && type->is(NodeKind::Text) && words.size() < 8 &&
            words.insert(cut_short(type->text)).second)
          found.types += (found.types.empty() ? "" : ", ") + cut_short(type->text);
    found.sizes = cut_short(found.sizes);
    return found;
  }

  std::string place(const PickleNode& entry) {
    const PickleNode* const frames = entry.find("frames");
    if (frames == nullptr || !frames->is(NodeKind::List))
      return {};
    for (const PickleNode* const frame : frames->items) {
      if (!may_visit())
        return {};
      const PickleNode *const file = frame->find("filename"), *const line = frame->find("line"),
                              *const name = frame->find("name");
      if (file == nullptr || line == nullptr || name == nullptr || is_of_torch(file->text))
        continue;
      return cut_short(fmt::format("{}:{} {}", base_name(file->text), line->integer, name->text));
    }
    return {};
  }

  /// Parses "0->1" of a send or "0<-1" of a receive: ranks of the group, this rank's first.
  void read_ends(FlightOperation& operation, std::string_view ends, const std::string& where) {
    const auto& ranks = record_.groups[static_cast<std::size_t>(operation.group)].ranks;
    const auto arrow = ends.find(operation.kind == FlightOperation::Kind::Send ? "->" : "<-");
    const int own = whole_number(ends.substr(0, arrow)).value_or(-1);
    const int peer =
        arrow == std::string_view::npos ? -1 : whole_number(ends.substr(arrow + 2)).value_or(-1);
    const auto is_member = [&](int rank) {
      return rank >= 0 && static_cast<std::size_t>(rank) < ranks.size();
    };
    if (!is_member(own) || !is_member(peer) || own == peer) {
      fault(where + "/profiling_name", fmt::format("\"{}\" are not two ranks of a group of {}",
                                                   cut_short(std::string(ends)), ranks.size()));
      return;
    }
    operation.peer = ranks[static_cast<std::size_t>(peer)];
    const int rank = ranks[static_cast<std::size_t>(own)];
    if (rank != record_.rank && !has_other_rank_) {
      has_other_rank_ = true;
      fault(where + "/profiling_name",
            fmt::format("is of rank {}, but the file's name ends in {}: a dump is named after its "
                        "rank, such as nccl_trace_rank_{}",
                        rank, record_.rank, rank));
    }
  }

  void read_entry(const PickleNode& node, const std::string& where) {
    if (!may_visit())
      return;
    if (!node.is(NodeKind::Dict)) {
      fault(where, "must be a dictionary");
      return;
    }
    const PickleNode* const name =
        want(node, "profiling_name", NodeKind::Text, where, "the operation's name");
    const PickleNode* const state =
        want(node, "state", NodeKind::Text, where, "the operation's state");
    const int group = group_of(node, where);
    if (const PickleNode* const id = node.find("pg_id"); id != nullptr && id->is(NodeKind::Integer))
      group_ids_.insert({id->integer, static_cast<std::size_t>(group)});
    if (name == nullptr || state == nullptr || record_.groups.empty())
      return;
    const auto colon = name->text.find(':');
    std::string_view word = name->text;
    word.remove_prefix(colon == std::string::npos ? 0 : colon + 1);
    FlightOperation operation{.name = cut_short(std::string(word.substr(0, word.find(' ')))),
                              .group = group};
    if (operation.name == "send" || operation.name == "recv") {
      operation.kind =
          operation.name == "send" ? FlightOperation::Kind::Send : FlightOperation::Kind::Receive;
      const auto space = word.find(' ');
      read_ends(operation, space == std::string_view::npos ? "" : word.substr(space + 1), where);
    }
    const PickleNode* const flag = node.find("is_p2p");
    const bool is_p2p =
        flag != nullptr ? flag->integer != 0 : operation.kind != FlightOperation::Kind::Collective;
    const PickleNode* const sequence = want(node, is_p2p ? "p2p_seq_id" : "collective_seq_id",
                                            NodeKind::Integer, where, "a number");
    operation.sequence = sequence == nullptr ? 0 : sequence->integer;
    // Gloo marks completed operations only as retired.
    const PickleNode* const retired = node.find("retired");
    operation.completed =
        state->text == "completed" ||
        (name->text.starts_with("gloo:") && retired != nullptr && retired->integer != 0);
    operation.started = state->text == "started";
    if (!operation.completed && !operation.started && state->text != "scheduled")
      fault(where + "/state",
            fmt::format("\"{}\" is not scheduled, started or completed", cut_short(state->text)));
    add(node, std::move(operation), is_p2p);
  }

  void add(const PickleNode& node, FlightOperation operation, bool is_p2p) {
    const PickleNode* const id = node.find("record_id");
    // A dump of active operations has gaps, where complete ones were left out.
    const bool follows = id != nullptr && id->is(NodeKind::Integer) && id->integer == entries_read_;
    record_.is_whole = follows && (entries_read_ == 0 || record_.is_whole);
    ++entries_read_;
    if (operation.name == "coalesced") {
      close_launch(operation, is_p2p);
      return;
    }
    operation.inputs = tensors(node, "input_sizes", "input_dtypes");
    operation.outputs = tensors(node, "output_sizes", "output_dtypes");
    operation.place = place(node);
    operation.launch = launches_++;
    is_p2p_.push_back(is_p2p);
    record_.operations.push_back(std::move(operation));
  }

  /// The entry "coalesced" follows the operations of its launch, and only it has their state.
  void close_launch(const FlightOperation& end, bool is_p2p) {
    const int launch = launches_++;
    for (std::size_t at = record_.operations.size(); at-- > launch_begin_;) {
      FlightOperation& own = record_.operations[at];
      if (own.group != end.group || own.sequence != end.sequence || is_p2p_[at] != is_p2p)
        break;
      own.launch = launch;
      own.is_coalesced = true;
      own.completed = end.completed;
      own.started = end.started;
    }
    launch_begin_ = record_.operations.size();
  }

  const std::string& file_;
  std::size_t visits_left_;
  bool was_endless_ = false;
  bool has_other_rank_ = false;
  FlightRecord record_;
  std::vector<std::string> faults_;
  std::vector<bool> is_p2p_;  // by operation
  std::size_t launch_begin_ = 0;
  std::int64_t entries_read_ = 0;
  std::set<std::pair<std::int64_t, std::size_t>> group_ids_;  // pg_id and group of entries
  int launches_ = 0;
};

/// Returns the number at the end of a dump's name, before the suffix.
std::optional<int> rank_in_name(const std::filesystem::path& file) {
  const std::string suffix = file.extension().string();
  const bool is_known = suffix == ".json" || suffix == ".pkl" || suffix == ".pickle";
  const std::string name = is_known ? file.stem().string() : file.filename().string();
  std::size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9')
    --begin;
  const auto rank = whole_number(std::string_view(name).substr(begin));
  return rank && *rank < most_ranks ? rank : std::nullopt;
}

std::vector<std::filesystem::path> files_at(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error))
    return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path, error))
    if (entry.is_regular_file(error) && rank_in_name(entry.path()))
      files.push_back(entry.path());
  if (files.empty())
    throw plan::InputError(
        fmt::format("{}: contains no dump of FlightRecorder: their names end in the rank, such as "
                    "nccl_trace_rank_0",
                    path.string()));
  std::sort(files.begin(), files.end());
  return files;
}

FlightRecord read_flight_record(const std::filesystem::path& path) {
  const std::string file = path.string();
  const auto rank = rank_in_name(path);
  if (!rank)
    throw plan::InputError(fmt::format(
        "{}: the name does not end in a rank, as in nccl_trace_rank_3 or rank3.json", file));
  std::ifstream stream(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream)
    throw plan::InputError(fmt::format("{}: cannot be read", file));
  return parse_flight_record(bytes, file, *rank);
}

}  // namespace

FlightRecord parse_flight_record(std::string_view bytes, const std::string& file, int rank) {
  plan::Pickled pickled;
  if (const auto first = bytes.find_first_not_of(" \t\r\n"); first == std::string_view::npos)
    throw plan::MalformedFile(fmt::format("{}: is empty", file));
  else if (bytes[first] == '{')
    pickled = nodes_of_json(plan::JsonDocument::parse(std::string(bytes), file).root());
  else if (bytes[0] == '\x80')
    pickled = plan::parse_pickle(bytes, file, {});
  else
    throw plan::MalformedFile(fmt::format(
        "{}: is not a dump of torch's FlightRecorder: it begins as neither a pickle nor JSON",
        file));
  return FlightReader(*pickled.root, bytes.size(), file, rank).record();
}

std::vector<FlightRecord> read_flight_records(const std::vector<std::filesystem::path>& paths) {
  std::map<int, FlightRecord> by_rank;
  std::vector<std::string> faults;
  const auto collect = [&](const auto& run) {
    try {
      run();
    } catch (const plan::InputError& error) {
      faults.emplace_back(error.what());
    }
  };
  for (const std::filesystem::path& path : paths)
    collect([&] {
      for (const std::filesystem::path& file : files_at(path))
        collect([&] {
          FlightRecord record = read_flight_record(file);
          const auto [found, is_new] = by_rank.try_emplace(record.rank, record);
          if (!is_new)
            throw plan::InputError(fmt::format("{}: is of rank {}, as {} is", record.file,
                                               record.rank, found->second.file));
        });
    });
  if (!faults.empty())
    throw plan::InputError(plan::listed_lines(faults));
  std::vector<FlightRecord> records;
  for (auto& [rank, record] : by_rank)
    records.push_back(std::move(record));
  return records;
}

}  // namespace pipewright::trace
