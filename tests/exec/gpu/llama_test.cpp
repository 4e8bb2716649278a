// A Llama that a user writes with LibTorch's modules: RMSNorm, rotary embeddings, SwiGLU, and query
// heads that share keys and values.

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "exec/support/equals_serial.hpp"
#include "exec/support/run_layers.hpp"
#include "exec/support/sample_schedules.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "support/skip.hpp"

namespace llama_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::make;
using test::partition_for;
namespace nn = torch::nn;

constexpr int hidden = 16, query_heads = 4, key_heads = 2, head_size = 4, inner = 40;
constexpr int sequence = 8, vocabulary = 32;

nn::Linear linear(int in, int out) { return nn::Linear(nn::LinearOptions(in, out).bias(false)); }

class RmsNormImpl : public nn::Module {
 public:
  RmsNormImpl() : weight_(register_parameter("weight", at::ones({hidden}))) {}
  at::Tensor forward(const at::Tensor& x) {
    return x * at::rsqrt(x.square().mean(-1, /*keepdim=*/true) + 1e-5) * weight_;
  }

 private:
  at::Tensor weight_;
};
TORCH_MODULE(RmsNorm);

class AttentionImpl : public nn::Module {
 public:
  AttentionImpl()
      : query_(register_module("query", linear(hidden, query_heads * head_size))),
        key_(register_module("key", linear(hidden, key_heads * head_size))),
        value_(register_module("value", linear(hidden, key_heads * head_size))),
        output_(register_module("output", linear(query_heads * head_size, hidden))) {
    const at::Tensor frequencies =
        at::pow(10000.0, -at::arange(0, head_size, 2, at::kFloat) / head_size);
    const at::Tensor angles =
        at::outer(at::arange(sequence, at::kFloat), frequencies).repeat({1, 2});
    cosine_ = register_buffer("cosine", angles.cos());
    sine_ = register_buffer("sine", angles.sin());
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor query = rotated(split(query_->forward(x), query_heads));
    const at::Tensor key = shared(rotated(split(key_->forward(x), key_heads)));
    const at::Tensor value = shared(split(value_->forward(x), key_heads));
    const at::Tensor mixed =
        at::scaled_dot_product_attention(query, key, value, /*attn_mask=*/{},
                                         /*dropout_p=*/0.0, /*is_causal=*/true);
    return output_->forward(mixed.transpose(1, 2).flatten(2));
  }

 private:
  /// Converts [batch, sequence, heads * size] to [batch, heads, sequence, size].
  static at::Tensor split(const at::Tensor& x, int heads) {
    return x.view({x.size(0), x.size(1), heads, head_size}).transpose(1, 2);
  }
  at::Tensor rotated(const at::Tensor& x) const {
    const auto halves = x.chunk(2, -1);
    return x * cosine_ + at::cat({-halves[1], halves[0]}, -1) * sine_;
  }
  /// Repeats each key or value head for every query head that uses it.
  static at::Tensor shared(const at::Tensor& x) {
    constexpr int readers = query_heads / key_heads;
    return x.unsqueeze(2).expand({-1, -1, readers, -1, -1}).flatten(1, 2);
  }

  nn::Linear query_, key_, value_, output_;
  at::Tensor cosine_, sine_;
};
TORCH_MODULE(Attention);

class BlockImpl : public nn::Module {
 public:
  BlockImpl()
      : norm1_(register_module("norm1", RmsNorm())),
        norm2_(register_module("norm2", RmsNorm())),
        attention_(register_module("attention", Attention())),
        gate_(register_module("gate", linear(hidden, inner))),
        up_(register_module("up", linear(hidden, inner))),
        down_(register_module("down", linear(inner, hidden))) {}

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor attended = x + attention_->forward(norm1_->forward(x));
    const at::Tensor normal = norm2_->forward(attended);
    return attended +
           down_->forward(at::silu(gate_->forward(normal)) * up_->forward(normal));  // SwiGLU
  }

 private:
  RmsNorm norm1_, norm2_;
  Attention attention_;
  nn::Linear gate_, up_, down_;
};
TORCH_MODULE(Block);

class HeadImpl : public nn::Module {
 public:
  HeadImpl()
      : norm_(register_module("norm", RmsNorm())),
        logits_(register_module("logits", linear(hidden, vocabulary))) {}
  at::Tensor forward(const at::Tensor& x) { return logits_->forward(norm_->forward(x)); }

 private:
  RmsNorm norm_;
  nn::Linear logits_;
};
TORCH_MODULE(Head);

/// Returns a model of six layers, on the small GPT's data.
TrainingSetup llama() {
  auto setup = test::small_setup();
  setup.layers = {module_layer("embedding", [] { return nn::Embedding(vocabulary, hidden); })};
  for (int block = 0; block < 4; ++block)
    setup.layers.push_back(module_layer(fmt::format("block{}", block), [] { return Block(); }));
  setup.layers.push_back(module_layer("head", [] { return Head(); }));
  return setup;
}

TEST_CASE("A user's Llama trains under each schedule with the bits of serial training", "[exec]") {
  for (const auto& s : test::schedules()) {
    INFO(plan::to_string(s));
    test::check_equals_serial(plan::lower(s), partition_for(s), llama());
  }
}

TEST_CASE("A Llama's outputs do not depend on later tokens", "[exec]") {
  const auto setup = llama();
  const auto outputs = [&](const at::Tensor& tokens) {
    return test::run_layers(setup.layers, {tokens}).front();
  };
  at::Tensor tokens = setup.data->input(0, 0).clone();
  const at::Tensor before = outputs(tokens);
  tokens.select(1, 5).fill_(9);
  const at::Tensor after = outputs(tokens);
  CHECK(before.narrow(1, 0, 5).equal(after.narrow(1, 0, 5)));
  CHECK_FALSE(before.select(1, 7).equal(after.select(1, 7)));
}

TEST_CASE("On a GPU a user's Llama trains with the bits of serial training there", "[cuda]") {
  if (gpus().names.empty())
    test::skip("no GPU: " + gpus().why_none);
  for (const bool graphs : {false, true})
    for (const auto& s : {make("1f1b", 2, 4), make("zbv", 2, 4), make("dualpipe", 2, 8)}) {
      INFO(plan::to_string(s) << (graphs ? ", graphs" : ""));
      test::check_equals_serial(plan::lower(s), partition_for(s), llama(),
                                {.cuda_graphs = graphs, .devices = on_gpus(2)});
    }
}

}  // namespace llama_test
