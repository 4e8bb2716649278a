#include "config_rotary.hpp"

#include <cmath>

namespace pipewright::plan {
namespace {

/// Returns the pointer of the object with the parameters; if the file has them by kind of layer,
/// that of the nested object.
std::string object_of(ConfigFields& fields, const char* layers) {
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const Json* value = fields.find(key);
    if (value == nullptr)
      continue;
    const bool by_kind = value->is_object() && value->contains(layers);
    return by_kind ? fmt::format("/{}/{}", key, layers) : fmt::format("/{}", key);
  }
  return {};
}

/// The rotary parameters, which have an object of their own; older files have some of them outside
/// of it.
class RotaryFields {
 public:
  RotaryFields(ConfigFields& fields, const char* layers = "full_attention")
      : fields_(fields), pointer_(object_of(fields, layers)) {
    if (pointer_.empty())
      return;
    object_.emplace(fields.root().diagnostics(), pointer_);
    const Json::json_pointer pointer(pointer_);
    const Json& root = fields.root().diagnostics().document().root();
    if (root.contains(pointer) && root.at(pointer).is_object())
      for (const auto& item : root.at(pointer).items())
        object_->allow(item.key());
  }

  bool has(const std::string& key) {
    const Json* value = object_ ? object_->find(key) : nullptr;
    return value != nullptr && !value->is_null();
  }
  double positive(const std::string& key, double fallback) {
    return has(key) ? object_->number(key, more_than(0), fallback)
                    : fields_.positive(key, fallback);
  }
  /// Returns a number, or 0 if the file does not have it.
  double number(const std::string& key) {
    constexpr double most = 1e6;
    return has(key) ? object_->number(key, Range{.least = 0, .most = most}, 0.0) : 0;
  }
  int tokens(const std::string& key, int fallback) {
    const Range range{.least = 1, .most = most_tokens};
    return has(key) ? object_->integer(key, range, fallback) : fields_.number(key, range, fallback);
  }
  std::vector<double> factors(const std::string& key) {
    return has(key) ? object_->numbers(key, more_than(0), std::vector<double>{})
                    : std::vector<double>{};
  }
  std::string type() {
    for (const char* key : {"rope_type", "type"})
      if (has(key))
        return object_->text(key, "default");
    return "default";
  }
  void not_trained(const std::string& key, const Json& value) {
    fields_.not_trained(pointer_.substr(1) + "/" + key, value);
  }
  bool is_false(const std::string& key) { return has(key) && *object_->find(key) == Json(false); }

 private:
  ConfigFields& fields_;
  std::string pointer_;
  std::optional<JsonObject> object_;
};

/// Returns YaRN's attention factor (arXiv 2309.00071).
double magnitude(double factor, double times) {
  return factor <= 1 ? 1 : 0.1 * times * std::log(factor) + 1;
}

void read_yarn(RotaryFields& fields, Rotary& rotary) {
  rotary.scaling = RotaryScaling::Yarn;
  rotary.fast = fields.positive("beta_fast", 32);
  rotary.slow = fields.positive("beta_slow", 1);
  const double times = fields.number("mscale"), of_all = fields.number("mscale_all_dim");
  rotary.magnitude = times > 0 && of_all > 0
                         ? magnitude(rotary.factor, times) / magnitude(rotary.factor, of_all)
                         : magnitude(rotary.factor, 1);
  rotary.magnitude = fields.positive("attention_factor", rotary.magnitude);
  if (fields.is_false("truncate"))
    fields.not_trained("truncate", false);
}

void read_long(RotaryFields& fields, Rotary& rotary) {
  rotary.scaling = RotaryScaling::Long;
  rotary.shorts = fields.factors("short_factor");
  rotary.longs = fields.factors("long_factor");
  const double longest = rotary.longest;
  rotary.magnitude = rotary.factor <= 1 || longest <= 1
                         ? 1
                         : std::sqrt(1 + std::log(rotary.factor) / std::log(longest));
  rotary.magnitude = fields.positive("attention_factor", rotary.magnitude);
}

}  // namespace

void read_rotary(ConfigFields& fields, TransformerConfig& config, double base) {
  RotaryFields rope(fields);
  Rotary& rotary = config.rotary;
  rotary.base = rope.positive("rope_theta", base);
  rotary.share = std::min(1.0, rope.positive("partial_rotary_factor", 1));
  const std::string type = rope.type();
  if (type == "default")
    return;
  rotary.longest = rope.tokens("original_max_position_embeddings", std::max(1, config.longest));
  rotary.factor = rope.positive("factor", 1.0 * std::max(1, config.longest) / rotary.longest);
  if (type == "linear") {
    rotary.scaling = RotaryScaling::Linear;
  } else if (type == "llama3") {
    rotary.scaling = RotaryScaling::Llama3;
    rotary.low = rope.positive("low_freq_factor", 1);
    rotary.high = rope.positive("high_freq_factor", 4);
  } else if (type == "yarn") {
    read_yarn(rope, rotary);
  } else if (type == "longrope" || type == "su") {
    read_long(rope, rotary);
  } else {
    rope.not_trained("rope_type", type);
  }
}

void read_window_rotary(ConfigFields& fields, TransformerConfig& config) {
  config.rotary.window_base = fields.positive("rope_local_base_freq", 10'000);
  const Json* parameters = fields.find("rope_parameters");
  if (parameters == nullptr || !parameters->is_object() ||
      !parameters->contains("sliding_attention"))
    return;
  RotaryFields rope(fields, "sliding_attention");
  config.rotary.window_base = rope.positive("rope_theta", config.rotary.window_base);
  if (const std::string type = rope.type(); type != "default")
    rope.not_trained("rope_type", type);
}

double score_scale_of_latent(ConfigFields& fields, const TransformerConfig& config) {
  RotaryFields rope(fields);
  const double of_all = rope.number("mscale_all_dim");
  if (rope.type() == "default" || of_all == 0)
    return 0;
  const double once = magnitude(config.rotary.factor, of_all);
  return once * once / std::sqrt(1.0 * config.head_channels + config.rope_channels);
}

}  // namespace pipewright::plan
