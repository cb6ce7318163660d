/* A C program with an MPI of its own: Ronda gets some of its ranks, in an order of the program's, and leaves MPI as it
 * was. */
#include <mpi.h>
#include <ronda/ronda.h>

#include <stdio.h>

static int failures = 0;

static void expect(int holds, const char* what) {
  char text[1000] = "";
  if (holds) return;
  ronda_last_error(text, sizeof text);
  fprintf(stderr, "FAILED: %s (last error: %s)\n", what, text);
  ++failures;
}

static void sum_over(MPI_Comm communicator) {
  int rank = 0, size = 0, group_rank = -1, group_size = -1;
  ronda_group* group = NULL;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  expect(ronda_init_comm(MPI_Comm_c2f(communicator), NULL, &group) == RONDA_OK, "ronda_init_comm");
  if (group == NULL) return;
  expect(ronda_rank(group, &group_rank) == RONDA_OK && group_rank == rank, "the communicator's rank");
  expect(ronda_size(group, &group_size) == RONDA_OK && group_size == size, "the communicator's size");
  for (int step = 0; step < 3; ++step) {
    double number = rank + 1;
    expect(ronda_allreduce(group, "number", &number, 1, RONDA_FLOAT64, RONDA_SUM) == RONDA_OK, "an allreduce");
    expect(number == size * (size + 1) / 2.0, "the sum over the communicator's ranks");
  }
  expect(ronda_finalize(group) == RONDA_OK, "ronda_finalize");
}

int main(int argc, char** argv) {
  int level = 0, rank = 0, finalized = 1, sum = 0;
  const int one = 1;
  MPI_Comm part = MPI_COMM_NULL;
  ronda_group* nothing = NULL;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);

  expect(ronda_init_comm(MPI_Comm_c2f(MPI_COMM_WORLD), NULL, NULL) == RONDA_ERROR_INPUT, "no place for the group");
  expect(ronda_init_comm(MPI_Comm_c2f(MPI_COMM_NULL), NULL, &nothing) == RONDA_ERROR_INPUT && nothing == NULL,
         "no communicator");
  expect(ronda_init_comm(12345, NULL, &nothing) == RONDA_ERROR_INPUT && nothing == NULL, "a handle of nothing");
  sum_over(MPI_COMM_WORLD);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part); /* in reversed order */
  sum_over(part);
  MPI_Comm_free(&part);

  MPI_Finalized(&finalized);
  expect(!finalized, "MPI goes on");
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_size(MPI_COMM_WORLD, &level);
  expect(sum == level, "MPI works");
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
