#include "pipewright/exec/stage/split_backward.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <unordered_map>

namespace pipewright::exec {

using torch::autograd::Edge;
using torch::autograd::Engine;
using torch::autograd::Node;

/// The gradients that reached a node.
struct SplitBackward::Reached {
  Tensors gradients;
  bool listening = true;
};

/// A hook that stores the gradients that reach a node.
struct SplitBackward::Listener final : torch::autograd::FunctionPreHook {
  explicit Listener(std::shared_ptr<Reached> r) : reached(std::move(r)) {}
  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& gradients) override {
    if (reached->listening)
      reached->gradients = gradients;
    return gradients;
  }
  std::shared_ptr<Reached> reached;
};

namespace {

/// The edges at which a backward starts, and their gradients.
struct Roots {
  std::vector<Edge> edges;
  Tensors gradients;
};

Roots roots_of(const Tensors& outputs, const Tensors& gradients) {
  Roots roots;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() || !outputs[i].requires_grad())
      continue;
    at::Tensor gradient = gradients.empty() ? at::ones_like(outputs[i]) : gradients.at(i);
    if (!gradient.defined())
      continue;
    roots.edges.push_back(torch::autograd::impl::gradient_edge(outputs[i]));
    roots.gradients.push_back(std::move(gradient));
  }
  return roots;
}

/// A hook that frees a node's saved tensors as soon as the node is done, as a backward that keeps
/// no graph does.
struct Release final : torch::autograd::FunctionPostHook {
  explicit Release(Node& of) : node(of) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    node.release_variables();
    return outputs;
  }
  Node& node;  // owns this
};

/// The nodes from which one of the inputs can be reached.
class Path {
 public:
  Path(const std::vector<Edge>& roots, const std::vector<Edge>& inputs) {
    for (const Edge& input : inputs)
      on_path_[input.function.get()] = true;
    for (const Edge& root : roots)
      visit(root.function);
  }

  /// The nodes of the path, inputs not included.
  const std::vector<std::shared_ptr<Node>>& nodes() const { return nodes_; }

  /// Returns true if an edge of this node leads to a gradient that the first half does not compute.
  bool branches_off(const Node& node) const {
    return std::ranges::any_of(node.next_edges(), [this](const Edge& next) {
      return next.is_valid() && !leads_to_input(next);
    });
  }
  bool leads_to_input(const Edge& edge) const {
    const auto found = on_path_.find(edge.function.get());
    return found != on_path_.end() && found->second;
  }

 private:
  /// Visits depth first without recursion. A node's result is known once those of all its
  /// successors are.
  void visit(const std::shared_ptr<Node>& root) {
    struct Frame {
      std::shared_ptr<Node> node;
      std::size_t next = 0;
    };
    std::vector<Frame> stack;
    const auto enter = [&](const std::shared_ptr<Node>& node) {
      if (on_path_.try_emplace(node.get(), false).second)
        stack.push_back({node});
    };
    enter(root);
    while (!stack.empty()) {
      Frame& top = stack.back();
      const auto& edges = top.node->next_edges();
      if (top.next < edges.size()) {
        const Edge edge = edges[top.next++];
        if (edge.is_valid())
          enter(edge.function);
        continue;
      }
      if (std::ranges::any_of(edges, [this](const Edge& edge) { return leads_to_input(edge); })) {
        on_path_[top.node.get()] = true;
        nodes_.push_back(top.node);
      }
      stack.pop_back();
    }
  }

  std::unordered_map<const Node*, bool> on_path_;
  std::vector<std::shared_ptr<Node>> nodes_;
};

bool is_wanted(const at::Tensor& input) { return input.defined() && input.requires_grad(); }

std::vector<Edge> wanted_edges(const Tensors& inputs) {
  std::vector<Edge> wanted;
  for (const at::Tensor& input : inputs)
    if (is_wanted(input))
      wanted.push_back(torch::autograd::impl::gradient_edge(input));
  return wanted;
}

/// Returns the roots that are on the path, or those that are not.
Roots roots_where(bool on_path, const Roots& roots, const Path& path) {
  Roots chosen;
  for (std::size_t i = 0; i < roots.edges.size(); ++i)
    if (path.leads_to_input(roots.edges[i]) == on_path) {
      chosen.edges.push_back(roots.edges[i]);
      chosen.gradients.push_back(roots.gradients[i]);
    }
  return chosen;
}

/// Removes a node's edges along the path, so that the second half does not repeat the work of the
/// first.
void cut_off_path(Node& node, const Path& path) {
  for (Edge& next : node.next_edges())
    if (next.is_valid() && path.leads_to_input(next))
      next = Edge();
}

}  // namespace

Tensors SplitBackward::input_gradients(const Tensors& outputs, const Tensors& gradients,
                                       const Tensors& inputs) {
  const Roots roots = roots_of(outputs, gradients);
  const std::vector<Edge> wanted = wanted_edges(inputs);
  const Path path(roots.edges, wanted);
  for (const auto& node : path.nodes())
    if (!path.branches_off(*node)) {
      node->add_post_hook(std::make_unique<Release>(*node));
    } else {
      remembered_.push_back({node, std::make_shared<Reached>()});
      node->add_pre_hook(std::make_unique<Listener>(remembered_.back().reached));
    }

  const Roots starts = roots_where(true, roots, path);
  Roots others = roots_where(false, roots, path);
  roots_ = std::move(others.edges);
  root_gradients_ = std::move(others.gradients);

  Tensors found(wanted.size());
  if (!starts.edges.empty() && !wanted.empty())
    found = Engine::get_default_engine().execute(starts.edges, starts.gradients,
                                                 /*keep_graph=*/true, /*create_graph=*/false,
                                                 /*accumulate_grad=*/false, wanted);

  for (const Remembered& place : remembered_) {
    place.reached->listening = false;
    cut_off_path(*place.node, path);
  }

  Tensors result;
  std::size_t next = 0;
  for (const at::Tensor& input : inputs)
    result.push_back(is_wanted(input) ? found[next++] : at::Tensor());
  return result;
}

void SplitBackward::weight_gradients() {
  std::vector<Edge> starts = std::move(roots_);
  Tensors gradients = std::move(root_gradients_);
  for (const Remembered& place : remembered_)
    for (std::size_t nr = 0; nr < place.reached->gradients.size(); ++nr)
      if (at::Tensor& gradient = place.reached->gradients[nr]; gradient.defined()) {
        starts.emplace_back(place.node, static_cast<std::uint32_t>(nr));
        gradients.push_back(std::move(gradient));
      }
  remembered_.clear();
  if (!starts.empty())
    Engine::get_default_engine().execute(starts, gradients, /*keep_graph=*/false,
                                         /*create_graph=*/false, /*accumulate_grad=*/true);
}

void full_backward(const Tensors& outputs, const Tensors& gradients) {
  const Roots roots = roots_of(outputs, gradients);
  if (!roots.edges.empty())
    Engine::get_default_engine().execute(roots.edges, roots.gradients, /*keep_graph=*/false,
                                         /*create_graph=*/false, /*accumulate_grad=*/true);
}

}  // namespace pipewright::exec
