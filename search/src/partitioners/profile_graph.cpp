#include "pipewright/search/partitioners/profile_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <sstream>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::search {
namespace {

const std::vector<std::string> columns{"record",          "id",          "desc",
                                       "forward_ms",      "backward_ms", "activation_bytes",
                                       "parameter_bytes", "src",         "dst"};
struct Column {
  enum Index : std::size_t {
    Record,
    Id,
    Desc,
    Forward,
    Backward,
    Activation,
    Parameters,
    From,
    To
  };
};

/// Reads a graph row by row; every error message names file, row and column.
class GraphReader {
 public:
  explicit GraphReader(std::string name) : name_(std::move(name)) {}

  ProfileGraph read(const std::string& text) {
    std::istringstream stream(text);
    std::string line;
    while (std::getline(stream, line)) {
      ++row_;
      if (!line.empty() && line.back() == '\r')
        line.pop_back();
      cells_ = split(line);
      if (row_ == 1)
        check_header();
      else
        read_row();
    }
    if (row_ == 0)
      throw plan::InputError(name_ + ": the file is empty");
    for (const auto& edge : edges_)
      graph_.edges.push_back({node(edge, edge.from), node(edge, edge.to)});
    return std::move(graph_);
  }

 private:
  struct Row {
    int number;
    std::vector<std::string> cells;
    Column::Index from;
    Column::Index to;
  };

  [[noreturn]] void fail(std::size_t column, const std::string& message) const {
    throw plan::InputError(fmt::format("{}:{}:{}: {}", name_, row_, column + 1, message));
  }

  std::vector<std::string> split(const std::string& line) const {
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (const char letter : line) {
      if (letter == '"')
        quoted = !quoted;
      else if (letter == ',' && !quoted)
        cells.emplace_back();
      else
        cells.back() += letter;
    }
    if (quoted)
      fail(cells.size() - 1, "a quoted cell has no end");
    return cells;
  }

  void check_header() const {
    for (std::size_t column = 0; column < columns.size(); ++column)
      if (column >= cells_.size() || cells_[column] != columns[column])
        fail(column, fmt::format("the column \"{}\" is needed here", columns[column]));
  }

  void read_row() {
    if (cells_.size() != columns.size())
      fail(0, fmt::format("{} cells, but there are {} columns", cells_.size(), columns.size()));
    if (cells_[Column::Record] == "edge")
      edges_.push_back({row_, cells_, Column::From, Column::To});
    else if (cells_[Column::Record] == "node" && has_no_figures())
      edges_.push_back({row_, cells_, Column::Id, Column::Desc});
    else if (cells_[Column::Record] == "node")
      read_node();
    else
      fail(Column::Record, fmt::format("\"{}\" is not known here (possible: node or edge)",
                                       cells_[Column::Record]));
  }

  /// Returns true for a row without figures: some files of DAPPLE have `node,FROM,TO` for an edge.
  bool has_no_figures() const {
    return std::all_of(cells_.begin() + Column::Forward, cells_.end(),
                       [](const std::string& cell) { return cell.empty(); });
  }

  void read_node() {
    if (!index_.try_emplace(cells_[Column::Id], static_cast<int>(graph_.nodes.size())).second)
      fail(Column::Id, fmt::format("there is a node \"{}\" already", cells_[Column::Id]));
    const double compute_ms = number(Column::Forward) + number(Column::Backward);
    if (!std::isfinite(compute_ms))
      fail(Column::Forward, "forward and backward together are too long");
    graph_.nodes.push_back({.id = cells_[Column::Id],
                            .description = cells_[Column::Desc],
                            .compute = {compute_ms / 1e3},
                            .activation = number(Column::Activation),
                            .parameters = number(Column::Parameters)});
  }

  /// Reads a number, or the sum of several: `[1.0; 2.0]` are the outputs of one operator.
  double number(std::size_t column) const {
    std::string cell = cells_[column];
    if (!cell.empty() && cell.front() == '[' && cell.back() == ']')
      cell = cell.substr(1, cell.size() - 2);
    double sum = 0;
    std::istringstream parts(cell);
    std::string part;
    bool any = false;
    while (std::getline(parts, part, ';')) {
      part.erase(0, part.find_first_not_of(' '));
      double value = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
      if (error != std::errc{} || end != part.data() + part.size() || !std::isfinite(value) ||
          value < 0)
        fail(column,
             fmt::format("{}: \"{}\" is not a number of at least 0", columns[column], part));
      sum += value;
      any = true;
    }
    if (!any)
      fail(column, fmt::format("{}: a number is missing", columns[column]));
    if (!std::isfinite(sum))
      fail(column, fmt::format("{}: the sum is too large", columns[column]));
    return sum;
  }

  int node(const Row& edge, std::size_t column) {
    row_ = edge.number;
    const auto found = index_.find(edge.cells[column]);
    if (found == index_.end())
      fail(column, fmt::format("there is no node \"{}\"", edge.cells[column]));
    return found->second;
  }

  std::string name_;
  int row_ = 0;
  std::vector<std::string> cells_;
  std::vector<Row> edges_;  // resolved last, because their nodes may come later
  std::map<std::string, int> index_;
  ProfileGraph graph_;
};

/// Returns the graph without some nodes and the edges that touch them.
ProfileGraph kept(const ProfileGraph& graph, const std::function<bool(int node)>& keep) {
  ProfileGraph rest;
  std::vector<int> moved(graph.nodes.size(), -1);
  for (std::size_t node = 0; node < graph.nodes.size(); ++node)
    if (keep(static_cast<int>(node))) {
      moved[node] = static_cast<int>(rest.nodes.size());
      rest.nodes.push_back(graph.nodes[node]);
    }
  for (const ProfileEdge& edge : graph.edges) {
    const ProfileEdge same{moved[static_cast<std::size_t>(edge.from)],
                           moved[static_cast<std::size_t>(edge.to)]};
    if (same.from >= 0 && same.to >= 0)
      rest.edges.push_back(same);
  }
  return rest;
}

}  // namespace

ProfileGraph profile_graph_from_csv(const std::string& text, const std::string& name) {
  return GraphReader(name).read(text);
}

ProfileGraph read_profile_graph(const std::filesystem::path& file) {
  return profile_graph_from_csv(plan::read_file(file), file.string());
}

ProfileGraph without_ends(const ProfileGraph& graph) {
  const auto dropped = [](const ProfileGraph& from, const std::string& prefix,
                          int ProfileEdge::*end) {
    std::vector<bool> joined(from.nodes.size(), false);
    for (const ProfileEdge& edge : from.edges)
      joined[static_cast<std::size_t>(edge.*end)] = true;
    return kept(from, [&](int node) {
      const auto at = static_cast<std::size_t>(node);
      return joined[at] || !from.nodes[at].description.starts_with(prefix);
    });
  };
  return dropped(dropped(graph, "Input", &ProfileEdge::to), "__getitem__", &ProfileEdge::from);
}

}  // namespace pipewright::search
