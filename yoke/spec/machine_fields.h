// The parts of a Machine that other documents hold too, described once (base/fields.h), for .cc files.
#pragma once
#include "yoke/base/fields.h"
#include "yoke/spec/machine.h"

namespace yoke {

template <class Visitor>
void visit_fields(Visitor& visit, NcclBuild& build) {
  visit.required("path", build.path);
  visit.optional("version", build.version);
  visit.optional("build_id", build.build_id);
  visit.optional("size", build.size);
  visit.optional("architectures", build.architectures);
  visit.optional("ptx", build.ptx);
}

template <class Visitor>
void visit_fields(Visitor& visit, NetworkSetting& setting) {
  visit.required("name", setting.name);
  visit.required("value", setting.value);
  visit.required("where", setting.where);
}

}  // namespace yoke
