#include "yoke/cli/bench_keep.h"

#include "yoke/base/error.h"
#include "yoke/base/log.h"
#include "yoke/bench/history.h"

namespace yoke {

void keep(const RunRecord& record) {
  try {
    for (const std::string& warning : keep_record(record, history_file()).warnings)
      log(LogLevel::kWarning, "{}", warning);
  } catch (const Error& error) {  // the data folder itself
    log(LogLevel::kWarning, "not in the history: {}", error.message());
  }
}

}  // namespace yoke
