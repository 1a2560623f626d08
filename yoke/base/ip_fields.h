// IPv4 addresses as fields of structs (fields.h), for .cc files.
#pragma once
#include "yoke/base/fields.h"
#include "yoke/base/ip.h"

namespace yoke {

inline void read_field(const Document& document, Ipv4& value) {
  const auto parsed = parse_ipv4(document.text);
  if (!is_text(document) || !parsed) refuse_field(document, "an IPv4 address", "write it as in 192.168.100.1");
  value = *parsed;
}
inline void write_field(Document& document, const Ipv4& value) { document = Document::string(to_string(value)); }

inline void read_field(const Document& document, Ipv4Prefix& value) {
  const auto parsed = parse_ipv4_prefix(document.text);
  if (!is_text(document) || !parsed) {
    refuse_field(document, "an IPv4 address with its prefix length", "write it as in 192.168.100.0/24");
  }
  value = *parsed;
}
inline void write_field(Document& document, const Ipv4Prefix& value) { document = Document::string(to_string(value)); }

}  // namespace yoke
