#include "pipewright/models/transformer/gradient_buckets.hpp"

#include "support/catch.hpp"

namespace gradient_buckets_test {

using namespace pipewright::plan;
using namespace pipewright::models;

/// The tensors of Llama 3 8B from its head to its embedding, each divided among `cut` devices.
std::vector<double> llama(double cut) {
  const double h = 4096, f = 14336, vocabulary = 128256;
  std::vector<double> tensors{vocabulary * h / cut};
  for (int layer = 0; layer < 32; ++layer)
    for (const double one : {f * h, 2 * f * h, 1.5 * h * h, h * h})
      tensors.push_back(one / cut);
  tensors.push_back(vocabulary * h / cut);
  return tensors;
}

TEST_CASE("A bucket takes 40 million parameters, or one million per device",
          "[plan][transformer]") {
  CHECK(least_bucket(8) == 40e6);
  CHECK(least_bucket(256) == 256e6);
}

TEST_CASE("The tensor that fills a bucket closes it", "[plan][transformer]") {
  // The head; in each layer both parts of the feed-forward, and the projections; the embedding.
  CHECK(gradient_buckets(llama(1), 40e6).count == 1 + 32 * 3 + 1);
  // 218 million of a layer and the 59 of the next one's first tensor.
  CHECK(gradient_buckets(llama(1), 256e6).count == 26);
  CHECK(gradient_buckets({30, 20, 60, 10}, 50).count == 3);
  CHECK(gradient_buckets({30, 20, 60, 10}, 50).last == Approx(10.0 / 120));
  CHECK(gradient_buckets({30, 20, 60}, 50).last == Approx(60.0 / 110));
}

TEST_CASE("Gradients that fill no bucket are reduced at once", "[plan][transformer]") {
  CHECK(gradient_buckets({3, 4}, 50).count == 1);
  CHECK(gradient_buckets({3, 4}, 50).last == 1);
  CHECK(gradient_buckets({}, 50).count == 1);
}

}  // namespace gradient_buckets_test
