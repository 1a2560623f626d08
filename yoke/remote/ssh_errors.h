// What ssh said, as one Error with a hint. ssh has one exit status, 255, for everything that goes wrong on its side;
// the reason is in its messages, which are not translated.
#pragma once
#include <string_view>

#include "yoke/base/error.h"
#include "yoke/remote/host.h"

namespace yoke::remote {

// "spark-2 (192.168.1.22)", or only one where both are the same.
std::string describe(const Host& host);

// `log` is what the client wrote to its log before it gave up.
Error ssh_error(const Host& host, std::string_view log);

}  // namespace yoke::remote
