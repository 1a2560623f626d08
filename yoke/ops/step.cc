#include "yoke/ops/step.h"

#include "yoke/base/check.h"

namespace yoke::ops {

void check_step(const StepBatch& batch, const PageRoom& room) {
  YOKE_CHECK_EQ(batch.ids.size(), batch.positions.size());
  YOKE_CHECK_GE(room.page_tokens, 1);
  std::int64_t row = 0;
  for (const StepSequence& sequence : batch.sequences) {
    YOKE_CHECK(sequence.first_row == row && sequence.fresh >= 0 && sequence.context >= 0 &&
                   row + sequence.fresh <= batch.tokens(),
               "rows {} + {} of {}, context {}", sequence.first_row, sequence.fresh, batch.tokens(), sequence.context);
    YOKE_CHECK(sequence.first_page >= 0 && sequence.pages >= 0 &&
                   sequence.first_page + std::int64_t{sequence.pages} <= std::ssize(batch.pages) &&
                   std::int64_t{sequence.context} + sequence.fresh <= sequence.pages * room.page_tokens,
               "{} + {} tokens in {} pages of {}", sequence.context, sequence.fresh, sequence.pages, room.page_tokens);
    for (std::int32_t i = 0; i < sequence.fresh; ++i) {
      YOKE_CHECK_EQ(batch.positions[static_cast<std::size_t>(row + i)], sequence.context + i);
    }
    row += sequence.fresh;
  }
  YOKE_CHECK_EQ(row, batch.tokens());
  for (const std::int32_t page : batch.pages)
    YOKE_CHECK(page >= 0 && page < room.pages, "page {} of {}", page, room.pages);
  std::int64_t last = -1;
  for (const std::int32_t logit_row : batch.logit_rows) {
    YOKE_CHECK(logit_row > last && logit_row < batch.tokens(), "logit row {} after {} of {}", logit_row, last,
               batch.tokens());
    last = logit_row;
  }
}

}  // namespace yoke::ops
