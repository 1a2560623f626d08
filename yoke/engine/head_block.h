// What Backend::select says of one row (ops/select.h), as text/sampling.h wants it.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "yoke/ops/select.h"
#include "yoke/text/sampling.h"

namespace yoke::engine {

// The same on all ranks, as they depend on the options alone.
ops::SelectRow select_row(const text::SamplingOptions& options, std::int32_t logit_row, std::int32_t slot);
std::size_t head_words(const text::SamplingOptions& options);

// Nothing where the row's logits are no numbers.
std::optional<text::HeadSlice> read_head(std::span<const std::int32_t> words);

}  // namespace yoke::engine
