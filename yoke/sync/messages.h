// Questions and answers of a copy, for .cc files of this folder.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "yoke/base/fields.h"
#include "yoke/sync/receiver.h"
#include "yoke/sync/sender.h"

namespace yoke::sync {

struct FolderFiles {
  std::string folder;
  std::vector<FileSize> files;
};

template <class Visitor>
void visit_fields(Visitor& visit, FileSize& file) {
  visit.required("path", file.path);
  visit.required("size", file.size);
}
template <class Visitor>
void visit_fields(Visitor& visit, FolderFiles& question) {
  visit.required("folder", question.folder);
  visit.required("files", question.files);
}
template <class Visitor>
void visit_fields(Visitor& visit, ExpectedFile& expected) {
  visit.required("file", expected.file);
  visit.required("present", expected.present);
  visit.required("bytes_to_come", expected.bytes_to_come);
}
template <class Visitor>
void visit_fields(Visitor& visit, ReceiverPlan& plan) {
  visit.required("folder", plan.folder);
  visit.required("token", plan.token);
  visit.required("rails", plan.rails);
  visit.required("streams", plan.streams);
  visit.required("files", plan.files);
}
template <class Visitor>
void visit_fields(Visitor& visit, PieceRange& range) {
  visit.required("first", range.first);
  visit.required("count", range.count);
}
template <class Visitor>
void visit_fields(Visitor& visit, FileToSend& file) {
  visit.required("file", file.file);
  visit.required("pieces", file.pieces);
}
template <class Visitor>
void visit_fields(Visitor& visit, SendingRail& rail) {
  visit.required("from", rail.from);
  visit.required("address", rail.to.address);
  visit.required("port", rail.to.port);
}
template <class Visitor>
void visit_fields(Visitor& visit, SenderPlan& plan) {
  visit.required("folder", plan.folder);
  visit.required("token", plan.token);
  visit.required("streams", plan.streams);
  visit.required("rails", plan.rails);
  visit.required("files", plan.files);
}
template <class Visitor>
void visit_fields(Visitor& visit, SentOverRail& rail) {
  visit.required("bytes", rail.bytes);
  visit.required("problem", rail.problem);
}
template <class Visitor>
void visit_fields(Visitor& visit, Sent& sent) {
  visit.required("rails", sent.rails);
  visit.required("time", sent.time);
  visit.required("damaged", sent.damaged);
}

}  // namespace yoke::sync
