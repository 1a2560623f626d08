// mpi_allreduce [BYTES …]: every rank says who it is, then all of them sum floats, size by size, and rank 0 prints a line
// for each: "bytes 16384 p50_us 71.2 p99_us 90.4". Every element of every rank's result is verified; a wrong one ends
// the job with status 3.
//
// What is timed is a chain of calls that begins behind a barrier, divided by its length: a rank that starts early cannot
// flatter a figure by more than its share of the chain.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kMaxSamples = 100, kPeriod = 7 };

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// Small whole numbers, so that the sum is exact in whatever order it is taken. Rank r holds r + i % kPeriod at i.
static float input_at(int rank, size_t i) { return (float)(rank + (int)(i % kPeriod)); }
static float sum_at(int ranks, size_t i) { return (float)(ranks * (ranks - 1) / 2 + ranks * (int)(i % kPeriod)); }

static void measure(size_t bytes, int rank, int ranks) {
  const size_t count = bytes / sizeof(float);
  const int samples = bytes <= 65536 ? kMaxSamples : 5;
  const int chain = bytes <= 65536 ? 10 : 1;
  float* input = malloc(bytes);
  float* sum = malloc(bytes);
  double times[kMaxSamples];
  if (!input || !sum) MPI_Abort(MPI_COMM_WORLD, 4);
  for (size_t i = 0; i < count; ++i) input[i] = input_at(rank, i);
  for (size_t i = 0; i < count; ++i) sum[i] = -1;
  for (int sample = -1; sample < samples; ++sample) {  // the first opens connections, and is not counted
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int k = 0; k < chain; ++k) MPI_Allreduce(input, sum, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (sample >= 0) times[sample] = (MPI_Wtime() - start) / chain;
  }
  for (size_t i = 0; i < count; ++i) {
    if (sum[i] == sum_at(ranks, i)) continue;
    fprintf(stderr, "rank %d: element %zu of %zu is %g, not %g\n", rank, i, count, sum[i], sum_at(ranks, i));
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  qsort(times, (size_t)samples, sizeof *times, compare);
  if (rank == 0) {
    printf("bytes %zu p50_us %.1f p99_us %.1f\n", bytes, times[samples / 2] * 1e6, times[samples * 99 / 100] * 1e6);
    fflush(stdout);
  }
  free(input);
  free(sum);
}

int main(int argc, char** argv) {
  int rank = 0, ranks = 0;
  char host[256] = "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  gethostname(host, sizeof host - 1);
  printf("rank %d of %d on %s\n", rank, ranks, host);
  fflush(stdout);
  for (int i = 1; i < argc; ++i) measure(strtoull(argv[i], NULL, 10), rank, ranks);
  MPI_Finalize();
  return 0;
}
