#include "yoke/comm/mpi/mpi_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <vector>

#include "yoke/base/shared_library.h"
#include "yoke/base/text.h"

namespace yoke::comm::mpi {
namespace {

// The names of both families' libraries. Debian calls MPICH's libmpich; elsewhere, and at Intel, it is libmpi.so.12.
constexpr const char* kOpenMpi[] = {"libmpi.so.40"};
constexpr const char* kMpich[] = {"libmpich.so.12", "libmpi.so.12"};

bool has_variable(const char* name) { return std::getenv(name) != nullptr; }
bool under_open_mpi() { return has_variable("OMPI_COMM_WORLD_SIZE") || has_variable("PMIX_RANK"); }
bool under_mpich() { return has_variable("PMI_RANK") || has_variable("PMI_SIZE"); }

SharedLibrary load_library() {
  std::vector<std::string> names;
  const auto add = [&](std::span<const char* const> more) { names.insert(names.end(), more.begin(), more.end()); };
  // Under a launcher only its own library can find the other ranks; the other would come up as a world of one.
  if (under_open_mpi() || !under_mpich()) add(kOpenMpi);
  if (under_mpich() || !under_open_mpi()) add(kMpich);
  // Open MPI's plug-ins take its symbols from the process.
  return value_or_throw(SharedLibrary::open({.what = "the MPI library",
                                             .names = std::move(names),
                                             .missing_hint = "install openmpi-bin or mpich, on every node the same",
                                             .old_hint = "yoke needs MPI 3.0 or newer",
                                             .symbols = LibraryRequest::Symbols::kForAll}));
}

MpiHandle as_handle(std::uintptr_t value) { return reinterpret_cast<MpiHandle>(value); }

// Open MPI's handles are the addresses of its objects (mpi.h: OMPI_PREDEFINED_GLOBAL).
MpiConstants open_mpi_constants(const SharedLibrary& library) {
  const auto object = [&](const char* name) { return library.need(name); };
  return {.comm_world = object("ompi_mpi_comm_world"),
          .errors_return = object("ompi_mpi_errors_return"),
          .float32 = object("ompi_mpi_float"),
          .int8 = object("ompi_mpi_int8_t"),
          .int16 = object("ompi_mpi_int16_t"),
          .int32 = object("ompi_mpi_int32_t"),
          .sum = object("ompi_mpi_op_sum"),
          .max = object("ompi_mpi_op_max"),
          .min = object("ompi_mpi_op_min"),
          .in_place = as_handle(1),
          .status_ignore = nullptr};
}

// The numbers of MPICH's mpi.h, which the MPICH ABI Compatibility Initiative fixed for its whole family.
MpiConstants mpich_constants() {
  return {.comm_world = as_handle(0x44000000),
          .errors_return = as_handle(0x54000001),
          .float32 = as_handle(0x4c00040a),
          .int8 = as_handle(0x4c000137),
          .int16 = as_handle(0x4c000238),
          .int32 = as_handle(0x4c000439),
          .sum = as_handle(0x58000003),
          .max = as_handle(0x58000001),
          .min = as_handle(0x58000002),
          .in_place = as_handle(~std::uintptr_t{0}),
          .status_ignore = as_handle(1)};
}

MpiFunctions functions_of(const SharedLibrary& library) {
  MpiFunctions f{};
#define YOKE_MPI_BIND(name) library.bind("MPI_" #name, f.name)
  YOKE_MPI_BIND(Init_thread);
  YOKE_MPI_BIND(Finalize);
  YOKE_MPI_BIND(Abort);
  YOKE_MPI_BIND(Get_library_version);
  YOKE_MPI_BIND(Error_string);
  YOKE_MPI_BIND(Comm_rank);
  YOKE_MPI_BIND(Comm_size);
  YOKE_MPI_BIND(Comm_dup);
  YOKE_MPI_BIND(Comm_free);
  YOKE_MPI_BIND(Comm_group);
  YOKE_MPI_BIND(Comm_create_group);
  YOKE_MPI_BIND(Comm_set_errhandler);
  YOKE_MPI_BIND(Group_incl);
  YOKE_MPI_BIND(Group_free);
  YOKE_MPI_BIND(Test);
  YOKE_MPI_BIND(Barrier);
  YOKE_MPI_BIND(Allreduce);
  YOKE_MPI_BIND(Reduce);
  YOKE_MPI_BIND(Reduce_scatter_block);
  YOKE_MPI_BIND(Ibarrier);
  YOKE_MPI_BIND(Ibcast);
  YOKE_MPI_BIND(Isend);
  YOKE_MPI_BIND(Irecv);
  YOKE_MPI_BIND(Iallgather);
  YOKE_MPI_BIND(Iallgatherv);
  YOKE_MPI_BIND(Ialltoall);
  YOKE_MPI_BIND(Ialltoallv);
  YOKE_MPI_BIND(Igather);
  YOKE_MPI_BIND(Iscatter);
#undef YOKE_MPI_BIND
  return f;
}

}  // namespace

MpiLibrary::MpiLibrary() {
  const SharedLibrary library = load_library();
  functions_ = functions_of(library);
  const bool is_open_mpi = library.find("ompi_mpi_comm_world") != nullptr;
  constants_ = is_open_mpi ? open_mpi_constants(library) : mpich_constants();
}

void MpiLibrary::check(int code, std::string_view what) const {
  if (code == 0) return;
  char text[1024] = {};  // MPI_MAX_ERROR_STRING is 256 in Open MPI, 512 or 1024 in MPICH
  int length = 0;
  functions_.Error_string(code, text, &length);
  throw Error(ErrorCode::kUnavailable, fmt::format("{} failed: {}", what, trim(text)),
              "see what the launcher prints about the other ranks");
}

MpiHandle MpiLibrary::type_of(tensor::DType type) const {
  switch (type) {
    case tensor::DType::kF32:
      return constants_.float32;
    case tensor::DType::kBf16:
    case tensor::DType::kF16:
      return constants_.int16;
    case tensor::DType::kI8:
      return constants_.int8;
    case tensor::DType::kI32:
      return constants_.int32;
    default:  // check_operation() lets no other type pass
      return nullptr;
  }
}

MpiHandle MpiLibrary::op_of(ReduceOp op) const {
  if (op == ReduceOp::kMax) return constants_.max;
  if (op == ReduceOp::kMin) return constants_.min;
  return constants_.sum;
}

std::string MpiLibrary::version() const {
  char text[8192 + 1] = {};  // MPI_MAX_LIBRARY_VERSION_STRING is 256 in Open MPI, 8192 in MPICH
  int length = 0;
  check(functions_.Get_library_version(text, &length), "MPI_Get_library_version");
  return short_mpi_version(text);
}

std::string short_mpi_version(std::string_view text) {
  std::string line(trim(text.substr(0, text.find_first_of(",\n"))));
  for (const std::string_view filler : {"Version:\t", "Version: ", "Version:"}) {
    if (const auto at = line.find(filler); at != std::string::npos) line.erase(at, filler.size());
  }
  if (const auto at = line.find(" v"); at != std::string::npos) line.erase(at + 1, 1);
  return line;
}

}  // namespace yoke::comm::mpi
