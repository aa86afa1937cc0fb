#include "attention/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "utils/error.h"

namespace minisgl {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Rows of a page table: cell = 100 * row + column.
struct MetadataTest : ::testing::Test {
  Tensor table = Tensor::zeros(DType::kInt32, {5, 16});
  std::deque<Req> reqs;
  Batch batch;
  AttentionMetadata metadata;

  MetadataTest() {
    for (int r = 0; r < 5; ++r) {
      for (int c = 0; c < 16; ++c) {
        table.view().select(r).data<int32_t>()[c] = 100 * r + c;
      }
    }
    batch.page_table = table;
  }
  void add(int32_t row, int64_t cached, int64_t device) {
    Req& req = reqs.emplace_back();
    req.table_idx = row;
    req.cached_len = cached;
    req.device_len = device;
    batch.padded_reqs.push_back(&req);
  }
};

TEST_F(MetadataTest, DescribesARaggedBatch) {
  add(2, 0, 6);
  add(0, 4, 7);
  add(3, 8, 9);
  fill_metadata(metadata, batch);
  EXPECT_THAT(metadata.cu_seqlens_q, ElementsAre(0, 6, 9, 10));
  EXPECT_THAT(metadata.cache_seqlens, ElementsAre(6, 7, 9));
  EXPECT_EQ(metadata.max_seqlen_q, 6);
  EXPECT_EQ(metadata.max_seqlen_k, 9);
  ASSERT_EQ(metadata.page_table.size(), 27u);
  for (int i = 0; i < 3; ++i) {
    for (int c = 0; c < metadata.cache_seqlens[static_cast<size_t>(i)]; ++c) {
      EXPECT_EQ(metadata.page_table[static_cast<size_t>(9 * i + c)],
                100 * batch.padded_reqs[static_cast<size_t>(i)]->table_idx + c);
    }
  }
  std::vector<int32_t> last;
  metadata.last_indices(last, 3);
  EXPECT_THAT(last, ElementsAre(5, 8, 9));
  EXPECT_FALSE(is_pure_decode(metadata));
  EXPECT_FALSE(is_fresh_prefill(metadata));
  std::vector<int32_t> scratch;
  EXPECT_THAT(cu_seqlens_k(metadata, scratch), ElementsAre(0, 6, 13, 22));
}

TEST_F(MetadataTest, WithNothingCachedKeysAreCountedLikeQueries) {
  add(0, 0, 6);
  add(1, 0, 1);
  fill_metadata(metadata, batch);
  EXPECT_TRUE(is_fresh_prefill(metadata));
  std::vector<int32_t> scratch;
  const std::span<const int32_t> keys = cu_seqlens_k(metadata, scratch);
  EXPECT_EQ(keys.data(), metadata.cu_seqlens_q.data());
  EXPECT_THAT(keys, ElementsAre(0, 6, 7));
}

TEST_F(MetadataTest, InPureDecodeEveryRequestHasItsRow) {
  add(0, 5, 6);
  add(1, 11, 12);
  add(2, 0, 1);
  fill_metadata(metadata, batch);
  EXPECT_TRUE(is_pure_decode(metadata));
  EXPECT_THAT(metadata.cu_seqlens_q, ElementsAre(0, 1, 2, 3));
}

TEST_F(MetadataTest, CoversPaddingWhileLastIndicesDoNot) {
  add(0, 5, 6);
  add(4, 0, 1);
  add(4, 0, 1);
  fill_metadata(metadata, batch);
  EXPECT_THAT(metadata.cache_seqlens, ElementsAre(6, 1, 1));
  std::vector<int32_t> last;
  metadata.last_indices(last, 1);
  EXPECT_THAT(last, ElementsAre(0));
}

TEST_F(MetadataTest, ARequestWithoutANewTokenOwnsNoRow) {
  add(0, 3, 5);
  add(1, 4, 4);
  add(2, 6, 7);
  fill_metadata(metadata, batch);
  EXPECT_THAT(metadata.cu_seqlens_q, ElementsAre(0, 2, 2, 3));
  EXPECT_FALSE(is_pure_decode(metadata));
}

TEST_F(MetadataTest, TwoRowsAndNoneAreNotMistakenForDecode) {
  add(0, 3, 5);
  add(1, 4, 4);
  fill_metadata(metadata, batch);
  EXPECT_THAT(metadata.cu_seqlens_q, ElementsAre(0, 2, 2));
  EXPECT_FALSE(is_pure_decode(metadata));
}

TEST_F(MetadataTest, ASmallerBatchAfterALargerOneIsDescribedAsIfItWereTheFirst) {
  add(0, 0, 16);
  add(1, 0, 9);
  add(2, 3, 7);
  fill_metadata(metadata, batch);
  batch.padded_reqs.clear();
  add(3, 2, 3);
  fill_metadata(metadata, batch);
  EXPECT_THAT(metadata.cu_seqlens_q, ElementsAre(0, 1));
  EXPECT_THAT(metadata.cache_seqlens, ElementsAre(3));
  EXPECT_THAT(metadata.page_table, ElementsAre(300, 301, 302));
  EXPECT_EQ(metadata.max_seqlen_q, 1);
  EXPECT_EQ(metadata.max_seqlen_k, 3);
}

TEST_F(MetadataTest, GrowingSequencesReallocateNothing) {
  add(0, 0, 1);
  add(1, 0, 1);
  fill_metadata(metadata, batch);
  const int32_t* table_memory = metadata.page_table.data();
  const int32_t* lengths_memory = metadata.cache_seqlens.data();
  for (int64_t length = 2; length <= 16; ++length) {
    for (Req& req : reqs) {
      req.cached_len = length - 1;
      req.device_len = length;
    }
    fill_metadata(metadata, batch);
  }
  EXPECT_EQ(metadata.page_table.data(), table_memory);
  EXPECT_EQ(metadata.cache_seqlens.data(), lengths_memory);
}

TEST_F(MetadataTest, RefusesRequestsThatTheTableDoesNotHold) {
  for (const auto& [row, cached, device] :
       {std::tuple<int32_t, int64_t, int64_t>{5, 0, 1}, {-1, 0, 1}, {0, 0, 17}, {0, 4, 3}}) {
    batch.padded_reqs.clear();
    add(row, cached, device);
    EXPECT_THROW(fill_metadata(metadata, batch), Error) << row << " " << cached << " " << device;
  }
  batch.padded_reqs.clear();
  EXPECT_THROW(fill_metadata(metadata, batch), Error);
}

}  // namespace
}  // namespace minisgl
