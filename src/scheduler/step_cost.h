// How long a step takes, learnt from those that were measured.
#pragma once

#include <cstdint>

namespace minisgl {

// milliseconds = a + b * tokens, by least squares in which old steps fade. Where all steps had
// about the same size, the line through the origin. Plain arithmetic, no clock. One thread.
class StepCost {
 public:
  void observe(int64_t tokens, double milliseconds);
  // The most tokens, at least 1, whose step should end in nine tenths of `milliseconds`; a small
  // number while nothing is known.
  int64_t tokens_within(double milliseconds) const;

 private:
  double weight_ = 0.0, x_ = 0.0, y_ = 0.0, xx_ = 0.0, xy_ = 0.0;  // faded sums
};

}  // namespace minisgl
