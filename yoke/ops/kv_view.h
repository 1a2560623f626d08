// The keys and values of one layer as attention sees them: pages of a fixed number of tokens, and for each sequence of
// the batch the pages that hold it. Who owns the pages and hands them out is the engine; this only looks. Token t of a
// sequence is slot t % page_tokens of its page number t / page_tokens.
#pragma once
#include <cstdint>
#include <span>

#include "yoke/tensor/tensor.h"

namespace yoke {

// One sequence in a step: `context` tokens are in the pages already, `fresh` ones come with this step (1 when decoding,
// a chunk of the prompt before). Rows of q, k and v are the fresh tokens of all sequences, one after the other.
struct KvSequence {
  std::span<const std::int32_t> pages;
  std::int64_t context = 0;
  std::int64_t fresh = 1;
};

struct KvView {
  // [pages, Hkv, page tokens, D]: all tokens of a head in a page lie together, as kernels read them. f32, bf16 or f16.
  Tensor keys;
  Tensor values;
  std::span<const KvSequence> sequences;

  std::int64_t kv_heads() const { return keys.extent(1); }
  std::int64_t page_tokens() const { return keys.extent(2); }
  std::int64_t head_width() const { return keys.extent(3); }
  void check() const;  // shapes that fit, and pages enough for all tokens: else a bug
};

}  // namespace yoke
