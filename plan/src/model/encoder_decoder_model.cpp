#include "pipewright/plan/model/encoder_decoder_model.hpp"

#include <fmt/format.h>

#include "pipewright/plan/model/declare_model.hpp"
#include "pipewright/plan/model/model.hpp"
#include "planned_layer.hpp"

namespace pipewright::plan {

template <MaybeConst<EncoderDecoderShape> Struct, class Visit>
void visit_fields(Struct& s, Visit&& visit) {
  constexpr Range blocks_range{.least = 1, .most = 10'000};
  visit("encoder_blocks", s.encoder_blocks, within(blocks_range), "Blocks of the encoder.");
  visit("decoder_blocks", s.decoder_blocks, within(blocks_range), "Blocks of the decoder.");
  visit("hidden", s.hidden, within(size_range), "Width; a multiple of heads.");
  visit("heads", s.heads, within(size_range), "Heads of each attention.");
  visit("sequence", s.sequence, within(size_range), "Bytes of a sample.");
  visit("vocabulary", s.vocabulary, FieldRule{.range = size_range, .schema = R"({"const": 256})"},
        "Number of byte values.");
}

namespace {

constexpr int bytes_of_text = 256;

/// Parameters of an attention and the norm before it. Its FLOPs are 8sh² + 4s²h, wherever its keys
/// come from.
std::int64_t attention_parameters(std::int64_t h) {
  return norm_parameters(h) + linear_parameters(h, 3 * h) + linear_parameters(h, h);
}
std::int64_t feed_forward_parameters(std::int64_t h) {
  return norm_parameters(h) + linear_parameters(h, 4 * h) + linear_parameters(4 * h, h);
}

/// Returns the plan of a block. The encoder's blocks have one attention, the decoder's two.
Layer translating_block(const EncoderDecoderShape& shape, const char* side, int index,
                        int attentions) {
  const std::int64_t h = shape.hidden;
  const double tokens = shape.sequence, width = shape.hidden;
  Layer layer =
      planned_layer(fmt::format("{}{}", side, index), side,
                    attentions * attention_parameters(h) + feed_forward_parameters(h),
                    attentions * (8 * tokens * width * width + 4 * tokens * tokens * width) +
                        16 * tokens * width * width,
                    {2, shape.sequence, shape.hidden});
  layer.checkpointable = true;
  return layer;
}

Model encoder_decoder_model(const EncoderDecoderShape& shape) {
  const std::int64_t h = shape.hidden;
  Model model{.name = "encoder-decoder", .layers = {}};
  model.layers.push_back(planned_layer("embedding", "embedding",
                                       (std::int64_t{shape.vocabulary} + 2 * shape.sequence) * h, 0,
                                       {2, shape.sequence, shape.hidden}));
  for (int index = 0; index < shape.encoder_blocks; ++index)
    model.layers.push_back(translating_block(shape, "encoder", index, 1));
  for (int index = 0; index < shape.decoder_blocks; ++index)
    model.layers.push_back(translating_block(shape, "decoder", index, 2));
  model.layers.push_back(planned_layer(
      "head", "norm-and-head", norm_parameters(h) + linear_parameters(h, shape.vocabulary),
      2.0 * shape.sequence * shape.hidden * shape.vocabulary, {shape.sequence, shape.vocabulary}));
  return model;
}

Sample window_and_answer(const EncoderDecoderShape& shape) {
  return {.units = shape.sequence,
          .input = {.shape = {2, shape.sequence}, .is_index = true},
          .target = {.shape = {shape.sequence}, .is_index = true}};
}

/// Returns what a layer saves. A decoder block has a second attention, which saves a norm's output
/// and its two statistics, queries, keys, values, the attention output, its sum with the input, and
/// the log-sum-exp.
LayerEstimate estimate_of_translation(const EncoderDecoderShape& shape, const Layer& layer) {
  const double tokens = shape.sequence, width = shape.hidden, heads = shape.heads;
  if (layer.kind == "norm-and-head")
    return {.kept = kept_by_head(tokens, width)};
  if (!layer.checkpointable)
    return {};
  const double second = layer.kind == "decoder" ? tokens * (6 * width + 2 + heads) : 0;
  return {.kept = kept_by_block(tokens, width, heads) + second};
}

void check_encoder_decoder(const EncoderDecoderShape& shape, JsonObject& object) {
  check_heads(shape.heads, shape.hidden, object);
  if (shape.vocabulary != bytes_of_text)
    object.error("vocabulary", fmt::format("a text is read byte by byte, so the vocabulary must "
                                           "be {}, not {}",
                                           bytes_of_text, shape.vocabulary));
}

}  // namespace

std::vector<std::string> faults_of_encoder_decoder_cut(const EncoderDecoderShape& shape,
                                                       int parts) {
  return faults_of_head_cut(shape.heads, parts);
}

template <>
const ModelDescriptor& descriptor_of<EncoderDecoderShape>() {
  static const ModelDescriptor translator = declare_model<EncoderDecoderShape>(
      {.meaning = "An encoder and a decoder that writes a text's bytes in reverse.",
       .data = text_data,
       .unit = "tokens",
       .layers = encoder_decoder_model,
       .sample = window_and_answer,
       .estimate = estimate_of_translation,
       .check = check_encoder_decoder,
       .faults_of_cut = faults_of_encoder_decoder_cut});
  return translator;
}

}  // namespace pipewright::plan
