// Computations of the executor on parts of tensors, which must have the bits that they have on the
// whole tensor. Cuts are made at every place modulo 64, so that each element occurs at every
// position of a SIMD vector. CTest runs this with each instruction set that the CPU has.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <functional>
#include <map>

#include "exec/support/equals_serial.hpp"
#include "pipewright/exec/cpu/cpu_branch.hpp"
#include "pipewright/exec/training/optimizer.hpp"
#include "support/catch.hpp"

namespace cut_tensors_test {

using namespace pipewright;
using exec::Optimizer;
using exec::OptimizerOptions;
using exec::Tensors;
using test::same_bits;

constexpr int places = 64;

/// Returns numbers of many magnitudes, the same each time. Uses one thread, as ranks do.
at::Tensor numbers(std::int64_t count, int seed, at::ScalarType type = at::kFloat) {
  at::set_num_threads(1);
  const at::Tensor x = at::arange(count, at::kDouble) + 1000.0 * seed;
  return ((x * 12.9898).sin() * 43758.5453).sin().mul((x * 0.37).cos().mul(5).exp()).to(type);
}

/// The state after three updates, by parameter and name, as slices in order.
using Trained = std::map<std::pair<std::size_t, std::string>, Tensors>;

/// Trains parameters of odd lengths. The first has `before` elements, which moves all cuts.
Trained train(const OptimizerOptions& options, at::ScalarType type, int before, int shards) {
  const std::vector<std::int64_t> lengths{before, 501, 77, 130};
  const exec::GradientUse use{at::scalar_tensor(0.37, at::kDouble),
                              at::scalar_tensor(0, at::kFloat)};
  Trained trained;
  for (int shard = 0; shard < shards; ++shard) {
    Tensors parameters;
    for (std::size_t p = 0; p < lengths.size(); ++p)
      parameters.push_back(numbers(lengths[p], static_cast<int>(p), type));
    Optimizer optimizer(parameters, options, {shard, shards});
    for (int step = 0; step < 3; ++step) {
      for (std::size_t p = 0; p < lengths.size(); ++p)
        parameters[p].mutable_grad() =
            numbers(lengths[p], 10 * (step + 1) + static_cast<int>(p), type);
      optimizer.step(1e-2, use);
    }
    for (const Optimizer::State& state : optimizer.states())
      if (state.name != "step")
        trained[{state.parameter, state.name}].push_back(state.value.detach().flatten());
    const Tensors slices = optimizer.own_slices();
    for (std::size_t s = 0; s < slices.size(); ++s)
      trained[{lengths.size(), "parameters"}].push_back(slices[s].detach().flatten());
  }
  return trained;
}

TEST_CASE("A sharded update has the bits of the whole update, wherever it is cut", "[exec]") {
  for (const auto kind :
       {plan::Optimizer::AdamW, plan::Optimizer::Sgd, plan::Optimizer::SgdMomentum})
    for (const auto type : {at::kFloat, at::kBFloat16})
      for (int before = 1; before <= places; ++before) {
        const OptimizerOptions options{.kind = kind, .weight_decay = 0.1};
        const Trained whole = train(options, type, before, 1);
        for (const int shards : {2, 3, 4}) {
          const Trained cut = train(options, type, before, shards);
          for (const auto& [name, slices] : whole) {
            INFO(fmt::format("{}, {}, {} shards, the first tensor has {} numbers: {} of {}",
                             plan::to_string(kind), c10::toString(type), shards, before,
                             name.second, name.first));
            CHECK(same_bits(at::cat(cut.at(name)), at::cat(slices)));
          }
        }
      }
}

/// Returns operations for which the result on a part must be the part of the result on the whole.
const std::vector<std::pair<std::string, std::function<at::Tensor(const at::Tensor&)>>>&
elementwise() {
  static const std::vector<std::pair<std::string, std::function<at::Tensor(const at::Tensor&)>>>
      all{
          {"scaled", [](const at::Tensor& x) { return x.clone().mul_(at::scalar_tensor(0.37)); }},
          {"added", [](const at::Tensor& x) { return x.clone().add_(x * 0.5F); }},
          {"to bfloat16", [](const at::Tensor& x) { return x.to(at::kBFloat16); }},
          {"to half", [](const at::Tensor& x) { return x.to(at::kHalf); }},
          {"from bfloat16", [](const at::Tensor& x) { return x.to(at::kBFloat16).to(at::kFloat); }},
          {"to double", [](const at::Tensor& x) { return x.to(at::kDouble).square(); }},
      };
  return all;
}

TEST_CASE("Elementwise operations do not depend on the position", "[exec]") {
  const at::Tensor whole = numbers(700, 1);
  for (const auto& [name, compute] : elementwise())
    for (int begin = 0; begin < places; ++begin)
      for (const std::int64_t length : {1, 15, 16, 63, 64, 65, 500}) {
        INFO(fmt::format("{}: {} numbers from {} on", name, length, begin));
        CHECK(same_bits(compute(whole.narrow(0, begin, length)),
                        compute(whole).narrow(0, begin, length)));
      }
}

/// Returns the same values at the beginning of new memory, and from element `begin` on.
at::Tensor shifted(const at::Tensor& values, std::int64_t begin) {
  const at::Tensor memory = at::empty({values.numel() + begin}, values.options());
  return memory.narrow(0, begin, values.numel()).view(values.sizes()).copy_(values);
}

TEST_CASE("Sums and products do not depend on where their operands lie", "[exec]") {
  exec::use_cpu_branch(plan::CpuBranch::Best);
  for (const std::int64_t length : {7, 20, 64, 251, 1000}) {
    const at::Tensor values = numbers(length, 2);
    const at::Tensor sum = values.sum(), squares = values.to(at::kDouble).square().sum();
    for (int begin = 0; begin < places; ++begin) {
      INFO(fmt::format("{} numbers from {} on", length, begin));
      CHECK(same_bits(shifted(values, begin).sum(), sum));
      CHECK(same_bits(shifted(values.to(at::kDouble), begin).square().sum(), squares));
    }
  }
  for (const auto& [rows, inner, columns] :
       {std::tuple{7, 20, 60}, {14, 20, 80}, {7, 80, 20}, {33, 65, 251}}) {
    const at::Tensor a = numbers(std::int64_t{rows} * inner, 3).view({rows, inner});
    const at::Tensor b = numbers(std::int64_t{inner} * columns, 4).view({inner, columns});
    const at::Tensor product = a.mm(b);
    for (int begin = 0; begin < places; ++begin) {
      INFO(fmt::format("{} x {} x {} from {} on", rows, inner, columns, begin));
      CHECK(same_bits(shifted(a, begin).mm(shifted(b, begin / 2)), product));
    }
  }
}

TEST_CASE("A row's largest numbers and its softmax do not depend on neighboring rows", "[exec]") {
  for (const int columns : {2, 3, 8, 17}) {
    const at::Tensor whole = numbers(std::int64_t{100} * columns, 5).view({100, columns});
    const auto weights_of = [](const at::Tensor& rows) {
      const at::Tensor logits = rows.detach().requires_grad_();
      const at::Tensor weights = at::softmax(std::get<0>(at::topk(logits, 2)), -1, at::kFloat);
      weights.square().sum().backward();
      return at::cat({weights.detach(), logits.grad()}, 1);
    };
    const at::Tensor all = weights_of(whole);
    for (int begin = 0; begin < places; ++begin) {
      INFO(fmt::format("{} columns, rows from {} on", columns, begin));
      CHECK(same_bits(weights_of(whole.narrow(0, begin, 7)).contiguous(),
                      all.narrow(0, begin, 7).contiguous()));
    }
  }
}

}  // namespace cut_tensors_test
