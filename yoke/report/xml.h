// Text made safe to stand in XML and HTML, between tags or in a quoted attribute.
#pragma once
#include <string>
#include <string_view>

namespace yoke::report {

// The five special characters become entities. Bytes that are no UTF-8 and characters that XML 1.0 does not allow (most
// control characters, U+FFFE, U+FFFF) become U+FFFD, so that the document stays well-formed whatever comes in.
std::string escape_xml(std::string_view text);

}  // namespace yoke::report
