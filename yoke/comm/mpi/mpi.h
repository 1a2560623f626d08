// Collectives through the machine's MPI (Open MPI or MPICH), for programs that mpirun or srun started.
//
//   auto comm = make_mpi(MpiSession::start());       // rank and size are the launcher's
//
// f32, i32 and i8 are reduced by MPI itself, in an order of its own that gives all ranks the same bits; f16 and bf16,
// which MPI cannot add, are gathered and reduced here, in the order of ranks. MPI bounds what the interface can
// promise: reductions by MPI block, so at the deadline the job ends (MPI_Abort, with a log line) instead of throwing;
// ranks at different operations are found out only by truncation or the deadline; a lost rank ends the job, so
// rebuild() throws kUnsupported. After an Error every communicator of the process throws it.
#pragma once
#include <memory>

#include "yoke/comm/communicator.h"
#include "yoke/comm/mpi/mpi_session.h"

namespace yoke::comm::mpi {

std::unique_ptr<Communicator> make_mpi(std::shared_ptr<MpiSession> session, CommunicatorOptions options = {});

}  // namespace yoke::comm::mpi
