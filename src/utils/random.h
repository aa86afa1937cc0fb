// Random numbers without state: a draw is a function of (seed, position), so a request's draws do
// not depend on what shares its batch, on the order of steps or on the number of threads.
#pragma once

#include <array>
#include <cstdint>

namespace minisgl {

// Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011): 128 random
// bits for a 128-bit counter and a 64-bit key.
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// 64 random bits. `stream` tells apart independent uses of one seed.
constexpr uint64_t random_bits(uint64_t seed, uint64_t position, uint64_t stream = 0) {
  const std::array<uint32_t, 4> r =
      philox4x32({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
                  static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return uint64_t{r[0]} << 32 | r[1];
}

// Uniform in [0, 1): all multiples of 2^-53 are equally likely.
constexpr double random_uniform(uint64_t seed, uint64_t position, uint64_t stream = 0) {
  return static_cast<double>(random_bits(seed, position, stream) >> 11) * 0x1.0p-53;
}

}  // namespace minisgl
