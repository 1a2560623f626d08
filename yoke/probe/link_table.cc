#include "yoke/probe/link_table.h"

#include <algorithm>

#include "yoke/base/fields.h"

namespace yoke::probe {

template <class Visitor>
void visit_fields(Visitor& visit, LinkAddress& address) {
  visit.required("family", address.family);
  visit.required("local", address.local);
  visit.required("prefixlen", address.prefixlen);
  visit.optional("broadcast", address.broadcast);
  visit.optional("scope", address.scope);
  visit.optional("dynamic", address.dynamic);
  visit.optional("noprefixroute", address.noprefixroute);
  visit.optional("label", address.label);
}

template <class Visitor>
void visit_fields(Visitor& visit, LinkInfo& info) {
  visit.required("info_kind", info.info_kind);
}

template <class Visitor>
void visit_fields(Visitor& visit, LinkEntry& link) {
  visit.required("ifindex", link.ifindex);
  visit.required("ifname", link.ifname);
  visit.required("flags", link.flags);
  visit.required("mtu", link.mtu);
  visit.required("operstate", link.operstate);
  visit.required("link_type", link.link_type);
  visit.optional("address", link.address);
  visit.optional("broadcast", link.broadcast);
  visit.optional("master", link.master);
  visit.optional("parentbus", link.parentbus);
  visit.optional("parentdev", link.parentdev);
  visit.optional("linkinfo", link.linkinfo);
  visit.required("addr_info", link.addr_info);
  visit.optional("module_eeprom", link.module_eeprom);
  visit.optional("flow_control", link.flow_control);
  visit.optional("dscp", link.dscp);
  visit.optional("pause_received", link.pause_received);
  visit.optional("pause_sent", link.pause_sent);
  visit.optional("discards_received", link.discards_received);
}

template <class Visitor>
void visit_fields(Visitor& visit, LinkRoute& route) {
  visit.required("dst", route.dst);
  visit.optional("gateway", route.gateway);
  visit.required("dev", route.dev);
  visit.optional("protocol", route.protocol);
  visit.optional("scope", route.scope);
  visit.optional("prefsrc", route.prefsrc);
  visit.optional("metric", route.metric);
  visit.required("flags", route.flags);
}

template <class Visitor>
void visit_fields(Visitor& visit, LinkTable& table) {
  visit.required("links", table.links);
  visit.required("routes", table.routes);
}

bool LinkEntry::has_flag(std::string_view flag) const {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

Document to_json(const LinkTable& table) { return write_fields(table); }
void from_json(const Document& document, LinkTable& table) { read_fields(document, table); }

}  // namespace yoke::probe
