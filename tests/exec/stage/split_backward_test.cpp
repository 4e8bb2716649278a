#include "pipewright/exec/stage/split_backward.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include "support/catch.hpp"

namespace split_backward_test {

using namespace pipewright::exec;

/// Two consecutive products with weights.
struct Graph {
  at::Tensor input = at::ones({2, 3}).requires_grad_();
  at::Tensor first = at::ones({3, 4}).requires_grad_();
  at::Tensor second = at::ones({4, 1}).requires_grad_();
  at::Tensor output = input.mm(first).mm(second);

  std::weak_ptr<torch::autograd::Node> root() const { return output.grad_fn(); }
};

TEST_CASE("The graph is freed after both halves", "[exec]") {
  Graph graph;
  const auto root = graph.root();
  const std::weak_ptr<torch::autograd::Node> inner = root.lock()->next_edge(0).function;
  SplitBackward split;
  const Tensors gradients =
      split.input_gradients({graph.output}, {at::ones({2, 1})}, {graph.input});
  CHECK(at::equal(gradients.at(0), at::full({2, 3}, 4)));
  CHECK_FALSE(graph.first.grad().defined());
  graph.output.reset();
  CHECK_FALSE(root.expired());
  split.weight_gradients();
  CHECK(at::equal(graph.first.grad(), at::full({3, 4}, 2)));
  CHECK(at::equal(graph.second.grad(), at::full({4, 1}, 6)));
  CHECK(root.expired());
  CHECK(inner.expired());
}

TEST_CASE("The graph is freed with a backward of which only the first half has run", "[exec]") {
  Graph graph;
  const auto root = graph.root();
  {
    SplitBackward split;
    split.input_gradients({graph.output}, {at::ones({2, 1})}, {graph.input});
    graph.output.reset();
    CHECK_FALSE(root.expired());
  }
  CHECK(root.expired());
}

}  // namespace split_backward_test
