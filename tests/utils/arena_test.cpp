#include "utils/arena.h"

#include <gtest/gtest.h>

#include <vector>

namespace minisgl {
namespace {

class ArenaTest : public testing::Test {
 protected:
  alignas(Arena::kAlignment) std::byte memory_[4096];
  Arena arena_{memory_, sizeof memory_};
};

TEST_F(ArenaTest, HandsOutAlignedPiecesThatDoNotOverlap) {
  auto* a = static_cast<std::byte*>(arena_.allocate(1));
  auto* b = static_cast<std::byte*>(arena_.allocate(300));
  auto* c = static_cast<std::byte*>(arena_.allocate(256));
  EXPECT_EQ(a, memory_);
  EXPECT_EQ(b, a + 256);
  EXPECT_EQ(c, b + 512);
}

TEST_F(ArenaTest, TheSameCallsGiveTheSameAddresses) {
  const auto step = [this] {
    const ArenaScope scope(arena_);
    return std::vector<void*>{arena_.allocate(100), arena_.allocate(700)};
  };
  EXPECT_EQ(step(), step());
  EXPECT_EQ(arena_.mark(), 0);
}

TEST_F(ArenaTest, ScopesNest) {
  arena_.allocate(256);
  {
    const ArenaScope outer(arena_);
    arena_.allocate(256);
    {
      const ArenaScope inner(arena_);
      arena_.allocate(1024);
    }
    EXPECT_EQ(arena_.mark(), 512);
  }
  EXPECT_EQ(arena_.mark(), 256);
  EXPECT_EQ(arena_.peak_bytes(), 1536);
}

TEST_F(ArenaTest, SaysHowMuchIsMissing) {
  arena_.allocate(4096);
  try {
    arena_.allocate(1);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("need 4352 bytes, the arena has 4096"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace minisgl
