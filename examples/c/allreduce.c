/* Ronda from C: every rank has a vector; afterwards each has the mean of all, and of many more vectors, handed in by
 * whichever order a rank likes.
 *
 *     cc allreduce.c -o allreduce -I<prefix>/include -L<prefix>/lib -lronda -Wl,-rpath,<prefix>/lib
 *     mpirun -n 2 ./allreduce */
#include <ronda/ronda.h>

#include <stdio.h>
#include <stdlib.h>

#define COUNT 1000
#define TENSORS 10

static void require(ronda_status status) {
  char text[1000];
  if (status == RONDA_OK) return;
  ronda_last_error(text, sizeof text);
  fprintf(stderr, "allreduce: error %d: %s\n", (int)status, text);
  exit(1);
}

static void wrong(const char* what) {
  fprintf(stderr, "allreduce: wrong result: %s\n", what);
  exit(1);
}

/* One at a time: the call returns when the result is there. */
static void mean_of_one(ronda_group* world, int rank, int size) {
  float data[COUNT];
  for (int i = 0; i < COUNT; ++i) data[i] = (float)(rank + i);
  require(ronda_allreduce(world, "one", data, COUNT, RONDA_FLOAT32, RONDA_MEAN));
  for (int i = 0; i < COUNT; ++i)
    if (data[i] != (float)(size - 1) / 2 + (float)i) wrong("a mean");
}

/* Several at once, in an order of this rank's own: the names tell which belong together. */
static void sums_of_several(ronda_group* world, int rank, int size) {
  static int32_t data[TENSORS][COUNT];
  ronda_request* requests[TENSORS];
  for (int step = 0; step < 3; ++step) {
    for (int k = 0; k < TENSORS; ++k) {
      const int tensor = (k + rank * 3) % TENSORS;
      char name[32];
      snprintf(name, sizeof name, "tensor %d", tensor);
      for (int i = 0; i < COUNT; ++i) data[tensor][i] = tensor + i * rank;
      require(ronda_allreduce_async(world, name, data[tensor], COUNT, RONDA_INT32, RONDA_SUM, &requests[k]));
    }
    for (int k = 0; k < TENSORS; ++k) require(ronda_wait(requests[k]));
    for (int tensor = 0; tensor < TENSORS; ++tensor)
      for (int i = 0; i < COUNT; ++i)
        if (data[tensor][i] != tensor * size + i * (size * (size - 1) / 2)) wrong("a sum");
  }
}

/* Ranks that have no more data join; the others go on. */
static void uneven_data(ronda_group* world, int rank, int size) {
  int last = -1;
  for (int step = 0; step <= rank; ++step) {
    double one = 1;
    require(ronda_allreduce(world, "uneven", &one, 1, RONDA_FLOAT64, RONDA_SUM));
    if (one != size - step) wrong("a sum of those that have data");
  }
  require(ronda_join(world, &last));
  if (last != size - 1) wrong("the last to join");
}

/* An error is a status and a text, and the group goes on. */
static void an_error(ronda_group* world, int rank, int size) {
  char text[1000];
  float data[4] = {0};
  const ronda_status status = ronda_allreduce(world, "disagreement", data, rank == 0 ? 3 : 4, RONDA_FLOAT32, RONDA_SUM);
  if (status != (size == 1 ? RONDA_OK : RONDA_ERROR_LOGIC)) wrong("the status of a disagreement");
  if (size == 1) return;
  ronda_last_error(text, sizeof text);
  if (rank == 0) printf("as it should, this fails: %s\n", text);
}

int main(void) {
  ronda_group* world = NULL;
  int rank = 0, size = 0;
  if (ronda_abi_version() != RONDA_ABI_VERSION) {
    fprintf(stderr, "allreduce: built for another libronda\n");
    return 1;
  }
  require(ronda_init(NULL, &world));
  require(ronda_rank(world, &rank));
  require(ronda_size(world, &size));
  mean_of_one(world, rank, size);
  sums_of_several(world, rank, size);
  uneven_data(world, rank, size);
  an_error(world, rank, size);
  require(ronda_barrier(world, "end"));
  if (rank == 0) printf("ronda %s: %d ranks agree\n", ronda_version(), size);
  require(ronda_finalize(world));
  return 0;
}
