// Checkpoints of torch.distributed.checkpoint (tests/hugging_face/torch_files.py), with tensors
// partitioned in several ways.

#include "pipewright/exec/checkpoint/distributed_checkpoint.hpp"

#include <ATen/ATen.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "pipewright/engine/models/megatron.hpp"
#include "pipewright/engine/models/transformer.hpp"
#include "pipewright/exec/training/without_memory.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace distributed_checkpoint_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::error_of;
namespace fs = std::filesystem;

const fs::path data = fs::path(PIPEWRIGHT_TEST_DATA_DIR) / "torch_files";

at::Tensor numbers(int index, at::IntArrayRef sizes, at::ScalarType type = at::kFloat) {
  return (100 * index + at::arange(c10::multiply_integers(sizes))).to(type).view(sizes);
}

TEST_CASE("A checkpoint written by torch is read as named tensors", "[exec]") {
  const auto checkpoint = DistributedCheckpoint::open(data / "plain");
  const NamedWeights weights = weights_of(checkpoint);
  CHECK(weights.sizes.size() == 3);  // n.x is not a tensor
  CHECK(at::equal(weights.read("a"), numbers(1, {2, 3})));
  CHECK(at::equal(weights.read("n.b"), numbers(2, {2}, at::kBFloat16)));
  CHECK(at::equal(weights.read("scalar"), at::scalar_tensor(4.0F)));
}

TEST_CASE("A tensor partitioned over ranks is read whole, or a box of it", "[exec]") {
  const auto checkpoint = DistributedCheckpoint::open(data / "megatron");
  const std::string qkv = "decoder.layers.self_attention.linear_qkv.weight";
  CHECK(checkpoint.tensors().at(qkv).chunks.size() == 4);  // two layers, two tensor-parallel ranks
  const at::Tensor whole = numbers(3, {2, 16, 8});
  CHECK(at::equal(checkpoint.read(qkv), whole));
  CHECK(at::equal(checkpoint.read(qkv, {1, 6, 2}, {1, 5, 3}),
                  whole.narrow(0, 1, 1).narrow(1, 6, 5).narrow(2, 2, 3)));
  CHECK(at::equal(checkpoint.read("output_layer.weight"), numbers(9, {12, 8})));
}

TEST_CASE("Only files that overlap the box are read", "[exec]") {
  const test::TempFolder folder;
  for (const auto& entry : fs::directory_iterator(data / "megatron"))
    fs::copy_file(entry.path(), folder.path() / entry.path().filename());
  // The numbers of the second pipeline rank are damaged; their sizes are unchanged.
  for (const char* const name : {"__2_0.distcp", "__3_0.distcp"}) {
    const auto size = fs::file_size(folder.path() / name);
    std::ofstream(folder.path() / name, std::ios::binary) << std::string(size, 'x');
  }
  const auto checkpoint = DistributedCheckpoint::open(folder.path());
  const std::string name = "decoder.layers.mlp.linear_fc2.weight";
  CHECK(at::equal(checkpoint.read(name, {0, 0, 0}, {1, 8, 6}),
                  numbers(7, {2, 8, 6}).narrow(0, 0, 1)));
  CHECK(error_of([&] { checkpoint.read(name); }).find("not a zip archive") != std::string::npos);
}

TEST_CASE("A distributed checkpoint that lacks a file or numbers is rejected", "[exec]") {
  const test::TempFolder folder;
  for (const auto& entry : fs::directory_iterator(data / "plain"))
    fs::copy_file(entry.path(), folder.path() / entry.path().filename());
  const auto file = folder.path() / "__0_0.distcp";
  const auto size = fs::file_size(file);
  fs::resize_file(file, size - 1);
  CHECK(error_of([&] {
          DistributedCheckpoint::open(folder.path());
        }).starts_with(file.string() + ": truncated: '"));
  fs::remove(file);
  CHECK(error_of([&] { DistributedCheckpoint::open(folder.path()); }) ==
        file.string() + ": No such file or directory");
  CHECK(error_of([&] { DistributedCheckpoint::open(data); }) ==
        (data / ".metadata").string() + ": No such file or directory");
}

TEST_CASE("Metadata is checked: chunks cover their tensor and are files of its folder", "[exec]") {
  std::ifstream stream(data / "plain" / ".metadata", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  CHECK(parse_distributed_metadata(bytes, "m").size() == 3);
  const auto refusal = [&](const std::string& old, const std::string& now) {
    std::string changed = bytes;
    const auto at = changed.find(old);
    REQUIRE(at != std::string::npos);
    changed.replace(at, old.size(), now);
    return error_of([&] { parse_distributed_metadata(changed, "m"); });
  };
  CHECK(refusal("__0_0.distcp", "../0.distcp!").find("is not a file in the checkpoint's folder") !=
        std::string::npos);
  CHECK(refusal("K\x02K\x03", "K\x02K\x04").find("'a' has 8 elements, but its chunks have 6") !=
        std::string::npos);
  CHECK(refusal("_StorageInfo", "_StorageEvil")
            .find("_StorageEvil' is not one that such a file needs") != std::string::npos);
}

/// Returns the model of the generator of these files.
plan::TransformerShape small_decoder() {
  plan::TransformerShape shape;
  shape.config = {.layers = 2,
                  .hidden = 8,
                  .heads = 4,
                  .kv_heads = 2,
                  .head_channels = 2,
                  .value_channels = 2,
                  .feed_forward = 6,
                  .vocabulary = 11,
                  .gated = true};
  shape.sequence = 4;
  return shape;
}

TEST_CASE("Megatron's names and layouts are converted to those of a decoder's layers",
          "[exec][models]") {
  const auto shape = small_decoder();
  const auto weights =
      megatron_weights(DistributedCheckpoint::open(data / "megatron"), shape.config);
  // Every parameter of the layers exists with its sizes, and no other.
  std::size_t parameters = 0;
  const auto layers = transformer_layers(shape);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const auto built = build_without_memory(layers, static_cast<int>(layer));
    for (const auto& named : built->named_parameters()) {
      INFO(layers[layer].name << "." << named.key());
      ++parameters;
      REQUIRE(weights.sizes.contains(layers[layer].name + "." + named.key()));
      CHECK(at::IntArrayRef(weights.sizes.at(layers[layer].name + "." + named.key())) ==
            named.value().sizes());
    }
  }
  CHECK(parameters == weights.sizes.size());
  for (const auto& [name, sizes] : weights.sizes)
    CHECK(weights.read(name).sizes() == at::IntArrayRef(sizes));

  CHECK(at::equal(weights.read("embedding.tokens.weight"), numbers(1, {12, 8}).narrow(0, 0, 11)));
  CHECK(at::equal(weights.read("layer1.norm1.weight"), numbers(2, {2, 8})[1]));
  // For each group of two heads: their queries, then the key, then the value, two channels each.
  const at::Tensor qkv = numbers(3, {2, 16, 8})[1];
  CHECK(at::equal(weights.read("layer1.attention.query.weight"),
                  at::cat({qkv.narrow(0, 0, 4), qkv.narrow(0, 8, 4)})));
  CHECK(at::equal(weights.read("layer1.attention.key.weight"),
                  at::cat({qkv.narrow(0, 4, 2), qkv.narrow(0, 12, 2)})));
  CHECK(at::equal(weights.read("layer1.attention.value.weight"),
                  at::cat({qkv.narrow(0, 6, 2), qkv.narrow(0, 14, 2)})));
  const at::Tensor gate_and_up = numbers(6, {2, 12, 8})[0];
  CHECK(at::equal(weights.read("layer0.feed_forward.gate.weight"), gate_and_up.narrow(0, 0, 6)));
  CHECK(at::equal(weights.read("layer0.feed_forward.up.weight"), gate_and_up.narrow(0, 6, 6)));
}

TEST_CASE("A Megatron checkpoint of another model is rejected with all differences",
          "[exec][models]") {
  auto config = small_decoder().config;
  config.feed_forward = 5;
  config.projection_bias = true;
  CHECK(error_of([&] {
          megatron_weights(DistributedCheckpoint::open(data / "megatron"), config);
        }) == (data / "megatron").string() +
                  ": not a checkpoint of this model\n"
                  "no tensor 'decoder.layers.self_attention.linear_proj.bias'\n"
                  "'decoder.layers.mlp.linear_fc1.weight' is [2, 12, 8], the model has [2, 10, 8]\n"
                  "'decoder.layers.mlp.linear_fc2.weight' is [2, 8, 6], the model has [2, 8, 5]");
}

}  // namespace distributed_checkpoint_test
