// The MPI library of this machine, found at run time: no MPI is needed to build yoke, and one program serves Open MPI
// and the MPICH family (MPICH, Intel MPI). docs/decisions/0003-mpi-loaded-at-run-time.md tells why this works.
//
// Handles are pointers in Open MPI and ints in MPICH. Both travel in a register or an 8-byte stack slot on x86-64 and
// aarch64, so functions are declared here with a pointer-sized handle; a handle that MPICH fills in is written to the
// low 4 bytes of one that was zero. Only mpi/ includes this; any thread may call, as MPI_THREAD_MULTIPLE allows.
#pragma once
#include <string>
#include <string_view>

#include "yoke/comm/communicator.h"

namespace yoke::comm::mpi {

using MpiHandle = void*;

// The functions in use, by their names without "MPI_", as MPI-3.0 declares them.
struct MpiFunctions {
  int (*Init_thread)(int* argc, char*** argv, int required, int* provided);
  int (*Finalize)();
  int (*Abort)(MpiHandle comm, int status);
  int (*Get_library_version)(char* text, int* length);
  int (*Error_string)(int code, char* text, int* length);
  int (*Comm_rank)(MpiHandle comm, int* rank);
  int (*Comm_size)(MpiHandle comm, int* size);
  int (*Comm_dup)(MpiHandle comm, MpiHandle* copy);
  int (*Comm_free)(MpiHandle* comm);
  int (*Comm_group)(MpiHandle comm, MpiHandle* group);
  int (*Comm_create_group)(MpiHandle comm, MpiHandle group, int tag, MpiHandle* made);
  int (*Comm_set_errhandler)(MpiHandle comm, MpiHandle handler);
  int (*Group_incl)(MpiHandle group, int count, const int* ranks, MpiHandle* made);
  int (*Group_free)(MpiHandle* group);
  int (*Test)(MpiHandle* request, int* done, void* status);

  int (*Barrier)(MpiHandle comm);
  int (*Allreduce)(const void* send, void* receive, int count, MpiHandle type, MpiHandle op, MpiHandle comm);
  int (*Reduce)(const void* send, void* receive, int count, MpiHandle type, MpiHandle op, int root, MpiHandle comm);
  int (*Reduce_scatter_block)(const void* send, void* receive, int count, MpiHandle type, MpiHandle op, MpiHandle comm);

  int (*Ibarrier)(MpiHandle comm, MpiHandle* request);
  int (*Ibcast)(void* values, int count, MpiHandle type, int root, MpiHandle comm, MpiHandle* request);
  int (*Isend)(const void* send, int count, MpiHandle type, int to, int tag, MpiHandle comm, MpiHandle* request);
  int (*Irecv)(void* receive, int count, MpiHandle type, int from, int tag, MpiHandle comm, MpiHandle* request);
  int (*Iallgather)(const void* send, int send_count, MpiHandle send_type, void* receive, int receive_count,
                    MpiHandle receive_type, MpiHandle comm, MpiHandle* request);
  int (*Iallgatherv)(const void* send, int send_count, MpiHandle send_type, void* receive, const int* receive_counts,
                     const int* offsets, MpiHandle receive_type, MpiHandle comm, MpiHandle* request);
  int (*Ialltoall)(const void* send, int send_count, MpiHandle send_type, void* receive, int receive_count,
                   MpiHandle receive_type, MpiHandle comm, MpiHandle* request);
  int (*Ialltoallv)(const void* send, const int* send_counts, const int* send_offsets, MpiHandle send_type,
                    void* receive, const int* receive_counts, const int* receive_offsets, MpiHandle receive_type,
                    MpiHandle comm, MpiHandle* request);
  int (*Igather)(const void* send, int send_count, MpiHandle send_type, void* receive, int receive_count,
                 MpiHandle receive_type, int root, MpiHandle comm, MpiHandle* request);
  int (*Iscatter)(const void* send, int send_count, MpiHandle send_type, void* receive, int receive_count,
                  MpiHandle receive_type, int root, MpiHandle comm, MpiHandle* request);
};

// What mpi.h gives as constants.
struct MpiConstants {
  MpiHandle comm_world, errors_return;
  MpiHandle float32, int8, int16, int32;
  MpiHandle sum, max, min;
  void* in_place;
  void* status_ignore;
};

class MpiLibrary {
 public:
  // Loads the library that the launcher in the environment belongs to, else any. Throws kUnsupported, naming what it
  // tried, or what the library lacks. It stays loaded: MPI libraries do not survive unloading.
  MpiLibrary();

  const MpiFunctions& call() const { return functions_; }
  const MpiConstants& constant() const { return constants_; }

  // The one wrapper that turns a code into an Error: check(call().Barrier(comm), "MPI_Barrier").
  void check(int code, std::string_view what) const;

  MpiHandle type_of(tensor::DType type) const;  // moves any; adds f32, i8 and i32
  MpiHandle op_of(ReduceOp op) const;           // an average begins as a sum
  std::string version() const;                  // "Open MPI 4.1.4"

 private:
  MpiFunctions functions_{};
  MpiConstants constants_{};
};

// "Open MPI v4.1.4, package: …" and "MPICH Version:\t4.0.2\n…" as "Open MPI 4.1.4" and "MPICH 4.0.2".
std::string short_mpi_version(std::string_view text);

}  // namespace yoke::comm::mpi
