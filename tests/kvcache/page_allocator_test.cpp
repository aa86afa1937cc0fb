#include "kvcache/page_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "utils/error.h"

namespace minisgl {
namespace {

using ::testing::ElementsAre;

TEST(PageAllocatorTest, HandsOutPagesInTheOrderInWhichTheyCameBack) {
  PageAllocator allocator(4, 16);
  std::vector<int32_t> pages;
  ASSERT_TRUE(allocator.try_allocate(3, pages));
  EXPECT_THAT(pages, ElementsAre(0, 16, 32));
  allocator.free(std::vector<int32_t>{32, 0});
  pages.clear();
  ASSERT_TRUE(allocator.try_allocate(3, pages));
  EXPECT_THAT(pages, ElementsAre(48, 32, 0));
  EXPECT_EQ(allocator.num_free(), 0);
}

TEST(PageAllocatorTest, ChangesNothingWhenThereAreTooFew) {
  PageAllocator allocator(2, 1);
  std::vector<int32_t> pages = {7};
  EXPECT_FALSE(allocator.try_allocate(3, pages));
  EXPECT_THAT(pages, ElementsAre(7));
  EXPECT_EQ(allocator.num_free(), 2);
}

TEST(PageAllocatorTest, NoticesADoubleFree) {
  PageAllocator allocator(4, 4);
  std::vector<int32_t> pages;
  ASSERT_TRUE(allocator.try_allocate(2, pages));
  allocator.free(std::vector<int32_t>{4});
  EXPECT_THROW(allocator.free(std::vector<int32_t>{4}), Error);
  EXPECT_THROW(allocator.free(std::vector<int32_t>{8}), Error);   // never handed out
  EXPECT_THROW(allocator.free(std::vector<int32_t>{1}), Error);   // inside a page
  EXPECT_THROW(allocator.free(std::vector<int32_t>{16}), Error);  // past the end
  EXPECT_THROW(allocator.free(std::vector<int32_t>{-4}), Error);
}

}  // namespace
}  // namespace minisgl
