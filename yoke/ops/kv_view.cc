#include "yoke/ops/kv_view.h"

#include "yoke/base/check.h"

namespace yoke {

void KvView::check() const {
  YOKE_CHECK(keys.shape().rank() == 4 && keys.shape() == values.shape() && keys.type() == values.type(), "{} and {}",
             to_string(keys.shape()), to_string(values.shape()));
  YOKE_CHECK_GE(page_tokens(), 1);
  for (const KvSequence& sequence : sequences) {
    const std::int64_t tokens = sequence.context + sequence.fresh;
    YOKE_CHECK(sequence.context >= 0 && sequence.fresh >= 0 &&
                   tokens <= static_cast<std::int64_t>(sequence.pages.size()) * page_tokens(),
               "{} + {} tokens in {} pages of {}", sequence.context, sequence.fresh, sequence.pages.size(),
               page_tokens());
    for (const std::int32_t page : sequence.pages) {
      YOKE_CHECK(page >= 0 && page < keys.extent(0), "page {} of {}", page, keys.extent(0));
    }
  }
}

}  // namespace yoke
