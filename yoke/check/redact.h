// Text without what does not belong into a public post: tokens and passwords, public addresses, the machine's own rail
// of MAC addresses, names of users, identifiers of devices. Private addresses stay: they are needed to see what is
// wrong.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace yoke::check {

// `names`: user names and the like, which are replaced wherever they stand as a word.
std::string redact(std::string_view text, const std::vector<std::string>& names = {});

}  // namespace yoke::check
