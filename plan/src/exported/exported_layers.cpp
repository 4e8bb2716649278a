#include "pipewright/plan/exported/exported_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "exported/node_uses.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

std::size_t at(int number) { return static_cast<std::size_t>(number); }

/// Returns which operators belong to the loss: those that depend on a target.
std::vector<bool> nodes_of_loss(const ExportedProgram& program) {
  std::vector<bool> of_target(program.values.size(), false), nodes(program.nodes.size(), false);
  for (const int target : program.targets)
    of_target[at(target)] = true;
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    const auto used = used_values(program.nodes[n]);
    nodes[n] = std::ranges::any_of(used, [&](int value) { return of_target[at(value)]; });
    if (nodes[n])
      for (const int value : made_values(program.nodes[n]))
        of_target[at(value)] = true;
  }
  return nodes;
}

/// Returns true for a module in a list: "3" of "h.3", or "encoder_layer_3".
bool is_of_list(const std::string& part) {
  const std::size_t last = part.find_last_not_of("0123456789");
  return !part.empty() &&
         (last == std::string::npos || (last + 1 < part.size() && part[last] == '_'));
}

/// Returns "h.3" for "h.3.attn.proj", or the whole path if it contains no list.
std::string module_of_layer(const std::string& path) {
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    if (is_of_list(path.substr(begin, end - begin)))
      return path.substr(0, end);
    begin = end + 1;
  }
  return path;
}

bool is_within(const std::string& path, const std::string& module) {
  return path.starts_with(module) &&
         (path.size() == module.size() || path[module.size()] == '.' || module.empty());
}

/// Cuts the operators into layers, and knows the places where a cut is allowed.
class Cutter {
 public:
  explicit Cutter(const ExportedProgram& program) : program_(program) {
    const std::vector<bool> of_loss = nodes_of_loss(program);
    for (int n = 0; n < static_cast<int>(program.nodes.size()); ++n)
      (of_loss[at(n)] ? loss_ : nodes_).push_back(n);
    if (nodes_.empty())
      throw InputError("all that the module computes depends on its targets");
    maker_.assign(program.values.size(), -1);
    for (std::size_t p = 0; p < nodes_.size(); ++p)
      for (const int value : made_values(node(static_cast<int>(p))))
        maker_[at(value)] = static_cast<int>(p);
    weight_of_.assign(program.values.size(), -1);
    for (std::size_t w = 0; w < program.weights.size(); ++w)
      weight_of_[at(program.weights[w].value)] = static_cast<int>(w);
    find_last_uses();
    find_closed();
  }

  int size() const { return static_cast<int>(nodes_.size()); }
  const ExportedNode& node(int place) const { return program_.nodes[at(nodes_[at(place)])]; }

  /// Returns why no cut is possible before this place, or null if one is.
  const std::string* closed(int place) const {
    return closed_[at(place)].empty() ? nullptr : &closed_[at(place)];
  }
  bool has_weights(int begin, int end) const {
    for (int p = begin; p < end; ++p)
      for (const int value : used_values(node(p)))
        if (const int weight = weight_of_[at(value)];
            weight >= 0 && program_.weights[at(weight)].is_parameter)
          return true;
    return false;
  }
  std::int64_t bytes_across(int place) const {
    std::int64_t bytes = 0;
    for (const int value : crossing(place))
      bytes += bytes_of(program_.values[at(value)]);
    return bytes;
  }
  /// Returns the places of the `pipe_split` marks.
  std::vector<int> marks() const {
    std::vector<int> places;
    for (const int mark : program_.marks)
      places.push_back(static_cast<int>(std::ranges::lower_bound(nodes_, mark) - nodes_.begin()));
    return places;
  }

  /// Builds the layers. `ends` has the place after each layer's last operator.
  ExportedLayers layers(const std::vector<std::string>& names, const std::vector<int>& ends) const {
    ExportedLayers all;
    int begin = 0;
    for (std::size_t l = 0; l < ends.size(); ++l) {
      ExportedLayer& layer = all.layers.emplace_back();
      layer.name = names[l];
      layer.nodes.assign(nodes_.begin() + begin, nodes_.begin() + ends[l]);
      layer.inputs = begin == 0 ? program_.inputs : crossing(begin);
      layer.outputs = ends[l] == size() ? ends_of_model() : crossing(ends[l]);
      layer.weights = weights_of(layer.nodes);
      begin = ends[l];
    }
    all.loss.name = "loss";
    all.loss.nodes = loss_;
    all.loss.inputs = all.layers.back().outputs;
    all.loss.weights = weights_of(loss_);
    if (!loss_.empty())
      all.loss.outputs = {loss_value()};
    tie(all);
    return all;
  }

 private:
  void find_last_uses() {
    last_use_.assign(program_.values.size(), -1);
    for (int p = 0; p < size(); ++p)
      for (const int value : used_values(node(p)))
        last_use_[at(value)] = p;
    for (const int value : ends_of_model())
      last_use_[at(value)] = size();
  }

  /// Returns the outputs of the last layer, in the order of the graph.
  std::vector<int> ends_of_model() const {
    std::set<int> values;
    if (loss_.empty())
      values.insert(program_.outputs.begin(), program_.outputs.end());
    for (const int n : loss_)
      for (const int value : used_values(program_.nodes[at(n)]))
        if (maker_[at(value)] >= 0 || std::ranges::count(program_.inputs, value) > 0)
          values.insert(value);
    return {values.begin(), values.end()};
  }

  int loss_value() const {
    for (const int output : program_.outputs)
      for (const int n : loss_)
        for (const int value : made_values(program_.nodes[at(n)]))
          if (value == output && count_of(program_.values[at(value)]) == 1)
            return output;
    throw InputError(
        "nothing that the module gives is one number that depends on its targets: the loss");
  }

  /// Returns the values made before this place and used at or after it.
  std::vector<int> crossing(int place) const {
    std::vector<int> values;
    for (std::size_t v = 0; v < program_.values.size(); ++v)
      if (weight_of_[v] < 0 && last_use_[v] >= place && maker_[v] < place &&
          (maker_[v] >= 0 || std::ranges::count(program_.inputs, static_cast<int>(v)) > 0))
        values.push_back(static_cast<int>(v));
    return values;
  }

  std::vector<int> weights_of(const std::vector<int>& nodes) const {
    std::set<int> weights;
    for (const int n : nodes)
      for (const int value : used_values(program_.nodes[at(n)]))
        if (weight_of_[at(value)] >= 0)
          weights.insert(weight_of_[at(value)]);
    return {weights.begin(), weights.end()};
  }

  /// Ties parameters that share memory, whatever their names are.
  void tie(ExportedLayers& all) const {
    std::map<std::int64_t, std::set<int>> layers_with;
    for (std::size_t l = 0; l < all.layers.size(); ++l)
      for (const int w : all.layers[l].weights)
        if (program_.weights[at(w)].is_parameter)
          layers_with[program_.weights[at(w)].begin].insert(static_cast<int>(l));
    for (const int w : all.loss.weights)
      if (program_.weights[at(w)].is_parameter)
        throw InputError(fmt::format("the loss has a parameter, {}; only layers have some",
                                     program_.weights[at(w)].name));
    std::map<int, std::set<int>> sharers;  // by layer: the layers it shares a weight with
    for (const auto& [memory, layers] : layers_with)
      if (layers.size() > 1)
        for (const int l : layers)
          share(all.layers[at(l)], memory, layers, sharers[l], all);
  }

  void share(ExportedLayer& layer, std::int64_t memory, const std::set<int>& layers,
             std::set<int>& sharers, const ExportedLayers& all) const {
    if (!sharers.empty() && sharers != layers)
      throw InputError(fmt::format(
          "layer {} shares one parameter with {} and another with other layers; let one layer hold "
          "those that share (--before, --after)",
          layer.name, all.layers[at(*sharers.begin())].name));
    sharers = layers;
    for (const int w : layer.weights)
      if (program_.weights[at(w)].begin == memory && program_.weights[at(w)].is_parameter) {
        layer.tied.push_back(w);
        break;
      }
    if (layer.tied_key.empty())
      layer.tied_key = std::ranges::find(program_.weights, memory, &ExportedWeight::begin)->name;
  }

  /// Finds the places where no cut is possible. A tensor and the operators that change it in place
  /// must stay together, and so must all users of a buffer that changes.
  void find_closed() {
    closed_.assign(at(size() + 1), "");
    std::map<int, std::pair<int, int>> users;  // first and last user of each weight
    std::set<int> changed;
    for (int p = 0; p < size(); ++p) {
      for (const int value : used_values(node(p)))
        if (const int weight = weight_of_[at(value)]; weight >= 0)
          users.try_emplace(weight, p, p).first->second.second = p;
      for (const int value : changed_values(node(p))) {
        const int base = base_of(value);
        if (const int weight = weight_of_[at(base)]; weight >= 0)
          changed.insert(weight);
        else
          close(std::max(0, maker_[at(base)]), p,
                fmt::format("{} changes a tensor in place", node(p).name));
      }
    }
    for (const int weight : changed)
      if (!program_.weights[at(weight)].is_parameter)
        close(users.at(weight).first, users.at(weight).second,
              fmt::format("both sides use {}, which changes", program_.weights[at(weight)].name));
  }

  void close(int first, int last, const std::string& why) {
    for (int p = first + 1; p <= last; ++p)
      closed_[at(p)] = why;
  }

  /// Returns the value that a view refers to.
  int base_of(int value) const {
    while (maker_[at(value)] >= 0) {
      const ExportedNode& maker = node(maker_[at(value)]);
      const auto used = used_values(maker);
      if (used.empty() || !may_be_view(maker))
        break;
      value = used.front();
    }
    return value;
  }

  const ExportedProgram& program_;
  std::vector<int> nodes_, loss_;      // indices into the graph
  std::vector<int> maker_, last_use_;  // of each value: places; −1 if none
  std::vector<int> weight_of_;
  std::vector<std::string> closed_;
};

std::vector<int> modules_ends(const Cutter& cutter) {
  std::vector<std::string> keys;
  std::set<std::string> inner;  // modules that contain other modules
  for (int p = 0; p < cutter.size(); ++p)
    keys.push_back(module_of_layer(cutter.node(p).module));
  for (const std::string& key : keys)
    for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1))
      inner.insert(key.substr(0, dot));
  inner.insert("");
  // Operators between modules belong to the module before them.
  std::string current;
  std::vector<int> ends;
  for (int p = 0; p < cutter.size(); ++p) {
    const std::string& key = keys[at(p)];
    if (inner.contains(key) || key == current)
      continue;
    if (!current.empty() && cutter.closed(p) == nullptr)
      ends.push_back(p);
    current = key;
  }
  ends.push_back(cutter.size());
  // So do modules without trainable weights.
  std::vector<int> kept;
  int begin = 0;
  for (std::size_t e = 0; e < ends.size(); ++e) {
    const bool joins_next = kept.empty() && !cutter.has_weights(0, ends[e]) && e + 1 < ends.size();
    if (joins_next)
      continue;
    if (!kept.empty() && !cutter.has_weights(begin, ends[e]))
      kept.back() = ends[e];
    else
      kept.push_back(ends[e]);
    begin = ends[e];
  }
  return kept;
}

/// Cuts near evenly spaced positions. Near each of them it takes the place that the fewest bytes
/// cross.
std::vector<int> bytes_ends(const Cutter& cutter, int count) {
  std::vector<std::pair<std::int64_t, int>> places;  // (bytes, place)
  for (int p = 1; p < cutter.size(); ++p)
    if (cutter.closed(p) == nullptr)
      places.emplace_back(cutter.bytes_across(p), p);
  if (static_cast<int>(places.size()) + 1 < count)
    throw InputError(fmt::format("--layers {}: its operators can be divided into {} at most", count,
                                 places.size() + 1));
  std::vector<int> ends;
  for (int border = 1; border < count; ++border) {
    const int middle = static_cast<int>(static_cast<std::int64_t>(cutter.size()) * border / count);
    const int reach = std::max(1, cutter.size() / (2 * count));
    const std::pair<std::int64_t, int>* best = nullptr;
    const auto distance = [&](int place) { return std::abs(place - middle); };
    for (const auto& place : places) {
      const bool is_free = ends.empty() || place.second > ends.back();
      const bool leaves_enough = std::ranges::count_if(places, [&](const auto& each) {
                                   return each.second > place.second;
                                 }) >= count - 1 - border;
      if (!is_free || !leaves_enough)
        continue;
      const bool near = distance(place.second) <= reach;
      const bool best_near = best != nullptr && distance(best->second) <= reach;
      if (best == nullptr || (near && !best_near) ||
          (near == best_near && (near ? std::pair(place.first, distance(place.second)) <
                                            std::pair(best->first, distance(best->second))
                                      : distance(place.second) < distance(best->second))))
        best = &place;
    }
    ends.push_back(best->second);
  }
  ends.push_back(cutter.size());
  return ends;
}

/// Returns the first and the last place of a module's operators.
std::pair<int, int> span_of(const Cutter& cutter, const std::string& module) {
  std::pair<int, int> span{-1, -1};
  std::vector<std::string> known;
  for (int p = 0; p < cutter.size(); ++p) {
    const std::string& path = cutter.node(p).module;
    if (std::ranges::find(known, path) == known.end())
      known.push_back(path);
    if (!is_within(path, module))
      continue;
    span.first = span.first < 0 ? p : span.first;
    span.second = p;
  }
  if (span.first < 0)
    throw InputError(
        fmt::format("no module \"{}\" computes anything{}", module, did_you_mean(module, known)));
  return span;
}

void require_open(const Cutter& cutter, int place, const std::string& whose) {
  if (place <= 0 || place >= cutter.size())
    throw InputError(fmt::format("{}: there is nothing on the other side of this border", whose));
  if (const std::string* const why = cutter.closed(place))
    throw InputError(fmt::format("{}: no border can be there: {}", whose, *why));
}

std::vector<int> named_ends(const Cutter& cutter, const LayerBoundaries& borders) {
  std::set<int> ends{cutter.size()};
  const auto add = [&](int place, const std::string& whose) {
    require_open(cutter, place, whose);
    ends.insert(place);
  };
  for (const std::string& module : borders.before)
    add(span_of(cutter, module).first, "before " + module);
  for (const std::string& module : borders.after)
    add(span_of(cutter, module).second + 1, "after " + module);
  return {ends.begin(), ends.end()};
}

std::vector<int> marked_ends(const Cutter& cutter) {
  std::set<int> ends{cutter.size()};
  const std::vector<int> marks = cutter.marks();
  if (marks.empty())
    throw InputError("the module calls pipe_split nowhere: no mark says where layers end");
  for (std::size_t m = 0; m < marks.size(); ++m) {
    require_open(cutter, marks[m], fmt::format("pipe_split {}", m + 1));
    ends.insert(marks[m]);
  }
  return {ends.begin(), ends.end()};
}

/// Names each layer after its first module with weights. Names are unique.
std::vector<std::string> names_of(const Cutter& cutter, const std::vector<int>& ends) {
  std::vector<std::string> names;
  std::map<std::string, int> count;
  int begin = 0;
  for (const int end : ends) {
    int first = begin;
    while (first < end && !cutter.has_weights(first, first + 1))
      ++first;
    const ExportedNode& node = cutter.node(first < end ? first : begin);
    std::string name = module_of_layer(node.module);
    if (name.empty())
      name = node.name;
    const int times = ++count[name];
    names.push_back(times == 1 ? name : fmt::format("{}#{}", name, times));
    begin = end;
  }
  return names;
}

}  // namespace

const std::vector<std::string>& layers_by_words() {
  static const std::vector<std::string> words{"modules", "marks"};
  return words;
}

ExportedLayers layers_of(const ExportedProgram& program, const LayerBoundaries& borders) {
  const Cutter cutter(program);
  const bool are_named = !borders.before.empty() || !borders.after.empty();
  const std::vector<int> ends = are_named                       ? named_ends(cutter, borders)
                                : borders.by == LayersBy::Marks ? marked_ends(cutter)
                                : borders.by == LayersBy::Bytes
                                    ? bytes_ends(cutter, std::max(1, borders.count))
                                    : modules_ends(cutter);
  return cutter.layers(names_of(cutter, ends), ends);
}

ExportedLayers layers_at(const ExportedProgram& program, const std::vector<std::string>& names,
                         const std::vector<std::string>& last_nodes) {
  const Cutter cutter(program);
  std::map<std::string, int> places;
  for (int p = 0; p < cutter.size(); ++p)
    places.emplace(cutter.node(p).name, p);
  std::vector<int> ends;
  for (std::size_t l = 0; l < last_nodes.size(); ++l) {
    const auto found = places.find(last_nodes[l]);
    if (found == places.end())
      throw InputError(fmt::format("layer {}: no operator of the graph is called \"{}\"", names[l],
                                   last_nodes[l]));
    const int end = found->second + 1;
    if (!ends.empty() && end <= ends.back())
      throw InputError(
          fmt::format("layer {}: it ends with {}, before the layer in front of it does", names[l],
                      last_nodes[l]));
    if (l + 1 < last_nodes.size())
      require_open(cutter, end, "after " + last_nodes[l]);
    ends.push_back(end);
  }
  if (ends.empty() || ends.back() != cutter.size())
    throw InputError(fmt::format("the last layer has to end with {}, the last operator",
                                 cutter.node(cutter.size() - 1).name));
  return cutter.layers(names, ends);
}

std::int64_t crossing_bytes(const ExportedProgram& program, const ExportedLayer& layer) {
  std::int64_t bytes = 0;
  for (const int value : layer.outputs)
    bytes += bytes_of(program.values[at(value)]);
  return bytes;
}

}  // namespace pipewright::plan
