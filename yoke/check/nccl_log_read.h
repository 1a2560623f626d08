// How the lines of an NCCL log are read: for nccl_log.cc alone, and the files beside it that share its work. Pure.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "yoke/check/nccl_log.h"

namespace yoke {

// A line as the job printed it: out of the JSON in which containers keep it, without the colours of a terminal.
std::string plain_line(std::string_view line);

// The host of "spark-fb97:23491:23491 [0] NCCL INFO …", given what is before "NCCL": also behind anything that a
// launcher put there ("[1,0]<stdout>:", "[default0]:", "worker-1 | "). "an untold host" where there is none.
std::string host_before(std::string_view before);

// What a host says of itself: its devices, networks, channels and queues.
void read_host(std::string_view line, NcclHost& host);

// What nccl-tests prints: its ranks, the rows of its table, its average. Whether the line is one of them.
bool read_nccl_tests(std::string_view line, NcclTestsResult& tests);

// Whether a line that is not NCCL's tells that the job failed in it, or waited for it in vain.
bool tells_of_error(std::string_view line);

// What stands between two texts, or from the first to the end of the line; nothing where `before` is not there.
std::optional<std::string_view> between(std::string_view line, std::string_view before, std::string_view after);
std::optional<int> number_behind(std::string_view line, std::string_view before);

}  // namespace yoke
