/* Measures MPI_Allreduce as bench_allreduce measures ours: allreduce BYTES… prints "BYTES MICROSECONDS" a line, for
 * float32 sums in private memory, in large pages where the system has them. Each measurement is short and taken many
 * times; the best counts. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { large_page = 1 << 21, least_rounds = 5, most_rounds = 100, warm_up = 5 };
static const double enough_seconds = 0.5;

/* How many calls a measurement has, of which one takes so long: by bench_allreduce's rule. */
static int calls(size_t bytes, double seconds) {
  const double by_size = (double)((size_t)160 << 20) / (double)bytes, by_time = 0.05 / seconds;
  const double fitting = by_size < by_time ? by_size : by_time;
  return fitting < 1 ? 1 : fitting > 200 ? 200 : (int)fitting;
}

static float* allocate(size_t bytes) {
  void* memory = NULL;
  const size_t rounded = (bytes + large_page - 1) / large_page * large_page;
  if (posix_memalign(&memory, large_page, rounded) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
  madvise(memory, rounded, MADV_HUGEPAGE);
  memset(memory, 0, rounded);
  return memory;
}

/* The slowest rank's seconds for each of `count` calls. */
static double measure(float* data, int elements, int count) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < count; ++i) MPI_Allreduce(MPI_IN_PLACE, data, elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  const double mine = (MPI_Wtime() - start) / count;
  double slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 1; i < argc; ++i) {
    const size_t bytes = strtoull(argv[i], NULL, 10);
    const int elements = (int)(bytes / sizeof(float));
    float* const data = allocate(bytes);
    for (int at = 0; at < elements; ++at) data[at] = (float)rank;
    MPI_Allreduce(MPI_IN_PLACE, data, elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (int at = 0; at < elements; ++at)
      if (data[at] != (float)(ranks * (ranks - 1) / 2)) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(data, 0, bytes); /* which no number of sums makes infinite */

    for (int at = 0; at < warm_up; ++at) measure(data, elements, 1);
    const int count = calls(bytes, measure(data, elements, 1));
    double best = 1e9, spent = 0;
    for (int round = 0; round < least_rounds || (round < most_rounds && spent < enough_seconds); ++round) {
      const double now = measure(data, elements, count);
      if (now < best) best = now;
      spent += count * now;
    }
    if (rank == 0) printf("%zu %.4f\n", bytes, best * 1e6);
    free(data);
  }
  MPI_Finalize();
  return 0;
}
