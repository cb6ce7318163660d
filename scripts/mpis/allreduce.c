/* Measures MPI_Allreduce as bench_allreduce measures ours: allreduce [--warm] BYTES... prints "BYTES MICROSECONDS" a
 * line, for float32 sums in private memory, in large pages where the system has them. Each rank rewrites its buffer
 * before each call, the call alone is timed, and the median of the slowest rank's times counts. With --warm the buffer
 * stays as it is, and the best of many short measurements counts. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { large_page = 1 << 21, least_rounds = 5, most_rounds = 100, most_calls = 200, warm_up = 5 };
static const double enough_seconds = 0.5;

/* How many calls a measurement has, of which one takes so long: by bench_allreduce's rule. */
static int calls(size_t bytes, double seconds) {
  const double by_size = (double)((size_t)160 << 20) / (double)bytes, by_time = 0.05 / seconds;
  const double fitting = by_size < by_time ? by_size : by_time;
  return fitting < 1 ? 1 : fitting > most_calls ? most_calls : (int)fitting;
}

static float* allocate(size_t bytes) {
  void* memory = NULL;
  const size_t rounded = (bytes + large_page - 1) / large_page * large_page;
  if (posix_memalign(&memory, large_page, rounded) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
  madvise(memory, rounded, MADV_HUGEPAGE);
  memset(memory, 0, rounded);
  return memory;
}

static void allreduce(float* data, int elements) {
  MPI_Allreduce(MPI_IN_PLACE, data, elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

/* The slowest rank's seconds for each of `count` calls. */
static double measure_warm(float* data, int elements, int count) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < count; ++i) allreduce(data, elements);
  const double mine = (MPI_Wtime() - start) / count;
  double slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

/* By zeros, which no number of sums makes infinite. */
static void rewrite(float* data, int elements) {
  for (int i = 0; i < elements; ++i) ((volatile float*)data)[i] = 0;
}

/* The slowest rank's seconds, call by call. Returns their sum. */
static double measure_rewritten(float* data, int elements, int count, double* seconds) {
  for (int i = 0; i < count; ++i) {
    rewrite(data, elements);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    allreduce(data, elements);
    seconds[i] = MPI_Wtime() - start;
  }
  MPI_Allreduce(MPI_IN_PLACE, seconds, count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += seconds[i];
  return sum;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

/* The best of many measurements, or the median of all calls. */
static double measure(float* data, size_t bytes, int warm) {
  static double seconds[most_rounds * most_calls];
  const int elements = (int)(bytes / sizeof(float));
  for (int i = 0; i < warm_up; ++i) measure_warm(data, elements, 1);
  const int count = calls(bytes, measure_warm(data, elements, 1));
  double best = 1e9, spent = 0;
  int rounds = 0;
  for (; rounds < least_rounds || (rounds < most_rounds && spent < enough_seconds); ++rounds) {
    if (warm) {
      const double now = measure_warm(data, elements, count);
      if (now < best) best = now;
      spent += count * now;
    } else {
      spent += measure_rewritten(data, elements, count, seconds + rounds * count);
    }
  }
  if (warm) return best;
  qsort(seconds, (size_t)(rounds * count), sizeof *seconds, ascending);
  return seconds[rounds * count / 2];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int warm = argc > 1 && strcmp(argv[1], "--warm") == 0;
  for (int i = 1 + warm; i < argc; ++i) {
    const size_t bytes = strtoull(argv[i], NULL, 10);
    const int elements = (int)(bytes / sizeof(float));
    float* const data = allocate(bytes);
    for (int at = 0; at < elements; ++at) data[at] = (float)rank;
    allreduce(data, elements);
    for (int at = 0; at < elements; ++at)
      if (data[at] != (float)(ranks * (ranks - 1) / 2)) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(data, 0, bytes); /* which no number of sums makes infinite */
    const double microseconds = measure(data, bytes, warm) * 1e6;
    if (rank == 0) printf("%zu %.4f\n", bytes, microseconds);
    free(data);
  }
  MPI_Finalize();
  return 0;
}
