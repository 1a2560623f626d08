// Whether a GPU lives of the processor's memory, read from the files of a machine alone: quick enough for every rank.
#pragma once
#include "yoke/base/file_tree.h"
#include "yoke/spec/memory_fit.h"

namespace yoke::probe {

// kUnified where a GPU on the bus shares the memory, else kHost. Inside a control group that limits memory (a lab's
// node, a container) it is kHost: a program that takes too much ends there, and the machine goes on.
spec::MemoryKind memory_kind(const FileTree& tree);

}  // namespace yoke::probe
