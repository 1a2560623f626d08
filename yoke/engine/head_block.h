// The heads' slices of one step's sampled rows (text/sampling.h) as words of a fixed number, so that rank 0 gathers
// them from all ranks in one operation.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "yoke/text/sampling.h"

namespace yoke {

// How many words a slice takes: the same on all ranks, as it depends on the options alone.
std::size_t head_words(const SamplingOptions& options);

// Nothing where the row's logits are no numbers.
void write_head(const std::optional<HeadSlice>& slice, std::span<std::int32_t> words);
std::optional<HeadSlice> read_head(std::span<const std::int32_t> words);

}  // namespace yoke
