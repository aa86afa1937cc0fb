#include "layers/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace minisgl {
namespace {

constexpr double kPi = std::numbers::pi;

// f' = f / factor for long waves, f for short ones, a smooth passage between (Llama 3.1).
void scale_llama3(std::vector<float>& inv_freq, const RopeConfig& rope, double original) {
  const double low_wavelength = original / rope.low_freq_factor;
  const double high_wavelength = original / rope.high_freq_factor;
  for (float& f : inv_freq) {
    const double wavelength = 2.0 * kPi / f;
    const double scaled = f / rope.factor;
    if (wavelength > low_wavelength) {
      f = static_cast<float>(scaled);
    } else if (wavelength >= high_wavelength && rope.high_freq_factor != rope.low_freq_factor) {
      const double smooth = (original / wavelength - rope.low_freq_factor) /
                            (rope.high_freq_factor - rope.low_freq_factor);
      f = static_cast<float>((1.0 - smooth) * scaled + smooth * f);
    }
  }
}

// The dimension that turns `rotations` times over the original context.
double yarn_dimension(double rotations, double dim, double theta, double original) {
  return dim * std::log(original / (rotations * 2.0 * kPi)) / (2.0 * std::log(theta));
}

void scale_yarn(std::vector<float>& inv_freq, const RopeConfig& rope, double original) {
  const double dim = 2.0 * static_cast<double>(inv_freq.size());
  double low = yarn_dimension(rope.beta_fast, dim, rope.theta, original);
  double high = yarn_dimension(rope.beta_slow, dim, rope.theta, original);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1.0);
  if (low == high) high += 0.001;  // no division by zero
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double interpolated = inv_freq[i] / rope.factor;
    inv_freq[i] = static_cast<float>(interpolated * ramp + inv_freq[i] * (1.0 - ramp));
  }
}

double yarn_mscale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

double yarn_attention_factor(const RopeConfig& rope) {
  if (rope.attention_factor) return *rope.attention_factor;
  if (rope.mscale && rope.mscale_all_dim && *rope.mscale != 0 && *rope.mscale_all_dim != 0) {
    return yarn_mscale(rope.factor, *rope.mscale) / yarn_mscale(rope.factor, *rope.mscale_all_dim);
  }
  return yarn_mscale(rope.factor, 1.0);
}

}  // namespace

RopeFrequencies rope_frequencies(const RopeConfig& rope, int64_t head_dim,
                                 int64_t max_position_embeddings) {
  const auto rotary_dim =
      static_cast<int64_t>(static_cast<double>(head_dim) * rope.partial_rotary_factor);
  MINISGL_CHECK(rotary_dim > 0 && rotary_dim % 2 == 0 && rotary_dim <= head_dim);
  const double original = static_cast<double>(rope.original_max_position_embeddings > 0
                                                  ? rope.original_max_position_embeddings
                                                  : max_position_embeddings);
  RopeFrequencies result;
  for (int64_t i = 0; i < rotary_dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(rotary_dim);
    result.inv_freq.push_back(1.0f / std::pow(static_cast<float>(rope.theta), exponent));
  }
  switch (rope.type) {
    case RopeConfig::Type::kDefault:
      break;
    case RopeConfig::Type::kLinear:
      for (float& f : result.inv_freq) f = static_cast<float>(f / rope.factor);
      break;
    case RopeConfig::Type::kLlama3:
      scale_llama3(result.inv_freq, rope, original);
      break;
    case RopeConfig::Type::kYarn:
      scale_yarn(result.inv_freq, rope, original);
      result.attention_factor = static_cast<float>(yarn_attention_factor(rope));
      break;
  }
  if (!rope.freq_factors.empty()) {
    MINISGL_CHECK(rope.freq_factors.size() == result.inv_freq.size());
    for (size_t i = 0; i < result.inv_freq.size(); ++i) {
      result.inv_freq[i] /= rope.freq_factors[i];
    }
  }
  return result;
}

Rope::Rope(Kernels& kernels, const RopeConfig& rope, int64_t head_dim,
           int64_t max_position_embeddings, int64_t max_seq_len) {
  const RopeFrequencies frequencies = rope_frequencies(rope, head_dim, max_position_embeddings);
  const auto half = static_cast<int64_t>(frequencies.inv_freq.size());
  const int64_t shape[] = {max_seq_len, 2 * half};
  const Tensor host = Tensor::zeros(DType::kFloat32, shape);
  float* row = host.view().data<float>();
  for (int64_t position = 0; position < max_seq_len; ++position, row += 2 * half) {
    for (int64_t i = 0; i < half; ++i) {
      const float angle =
          static_cast<float>(position) * frequencies.inv_freq[static_cast<size_t>(i)];
      row[i] = std::cos(angle) * frequencies.attention_factor;
      row[half + i] = std::sin(angle) * frequencies.attention_factor;
    }
  }
  table_ = kernels.allocate(DType::kFloat32, shape);
  kernels.copy(table_, host);
}

}  // namespace minisgl
