#include "scheduler/step_cost.h"

#include <algorithm>

namespace minisgl {
namespace {

constexpr double kFade = 0.95;
constexpr double kMargin = 0.9;
constexpr double kLeastSpread = 1e-3;  // of the sizes, relative, below which a slope means nothing
constexpr int64_t kUnknown = 16, kMost = int64_t{1} << 30;

}  // namespace

void StepCost::observe(int64_t tokens, double milliseconds) {
  if (tokens < 1 || !(milliseconds > 0.0)) return;
  const auto x = static_cast<double>(tokens);
  weight_ = kFade * weight_ + 1.0;
  x_ = kFade * x_ + x;
  y_ = kFade * y_ + milliseconds;
  xx_ = kFade * xx_ + x * x;
  xy_ = kFade * xy_ + x * milliseconds;
}

int64_t StepCost::tokens_within(double milliseconds) const {
  if (weight_ == 0.0) return kUnknown;
  const double mean_x = x_ / weight_, mean_y = y_ / weight_;
  const double variance = xx_ / weight_ - mean_x * mean_x;
  double a = 0.0, b = mean_y / mean_x;
  if (variance > kLeastSpread * mean_x * mean_x) {
    const double slope = (xy_ / weight_ - mean_x * mean_y) / variance;
    if (slope > 0.0 && slope < b) {
      b = slope;
      a = mean_y - b * mean_x;
    }
  }
  const double tokens = (kMargin * milliseconds - a) / b;
  return static_cast<int64_t>(std::clamp(tokens, 1.0, static_cast<double>(kMost)));
}

}  // namespace minisgl
