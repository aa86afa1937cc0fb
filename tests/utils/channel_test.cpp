#include "utils/channel.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace minisgl {
namespace {

TEST(Channel, GivesMessagesInTheOrderTheyCame) {
  Channel<int> channel(3);
  for (const int i : {1, 2, 3}) EXPECT_TRUE(channel.push(i));
  EXPECT_EQ(channel.size(), 3u);
  for (const int i : {1, 2, 3}) EXPECT_EQ(channel.pop(), i);
  EXPECT_EQ(channel.try_pop(), std::nullopt);
}

TEST(Channel, MovesMessagesThatCannotBeCopied) {
  Channel<std::unique_ptr<int>> channel(1);
  EXPECT_TRUE(channel.push(std::make_unique<int>(5)));
  EXPECT_EQ(**channel.pop(), 5);
}

TEST(Channel, TryPushLeavesTheMessageWhenFull) {
  Channel<std::unique_ptr<int>> channel(1);
  auto first = std::make_unique<int>(1);
  auto second = std::make_unique<int>(2);
  EXPECT_TRUE(channel.try_push(first));
  EXPECT_FALSE(channel.try_push(second));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(*second, 2);
}

TEST(Channel, CloseKeepsWhatWasPushedAndRefusesMore) {
  Channel<int> channel(2);
  EXPECT_TRUE(channel.push(1));
  channel.close();
  EXPECT_TRUE(channel.closed());
  EXPECT_FALSE(channel.push(2));
  EXPECT_EQ(channel.pop(), 1);
  EXPECT_EQ(channel.pop(), std::nullopt);
}

TEST(Channel, CloseEndsAWaitingPop) {
  Channel<int> channel(1);
  std::optional<int> popped = 7;
  {
    std::jthread reader([&] { popped = channel.pop(); });
    channel.close();
  }
  EXPECT_EQ(popped, std::nullopt);
}

TEST(Channel, CloseEndsAWaitingPush) {
  Channel<int> channel(1);
  ASSERT_TRUE(channel.push(1));
  bool pushed = true;
  {
    std::jthread writer([&] { pushed = channel.push(2); });
    channel.close();
  }
  EXPECT_FALSE(pushed);
  EXPECT_EQ(channel.pop(), 1);
}

TEST(Channel, LosesNothingBetweenTwoThreadsWhenSmallerThanTheStream) {
  constexpr int kMessages = 20000;
  Channel<int> channel(4);
  std::vector<int> received;
  {
    std::jthread reader([&] {
      while (const auto message = channel.pop()) received.push_back(*message);
    });
    for (int i = 0; i < kMessages; ++i) ASSERT_TRUE(channel.push(i));
    channel.close();
  }
  std::vector<int> expected(kMessages);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(received, expected);
}

TEST(Channel, WithoutRoomIsRefused) { EXPECT_THROW(Channel<int>(0), Error); }

}  // namespace
}  // namespace minisgl
