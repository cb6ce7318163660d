/* ronda.h: the coordinator from C. */
#include <ronda/ronda.h>

#include <stdio.h>
#include <stdlib.h>

static void require(int holds, const char* what) {
  char text[1000] = "";
  if (holds) return;
  ronda_last_error(text, sizeof text);
  fprintf(stderr, "expected %s (last error: %s)\n", what, text);
  exit(1);
}

int main(void) {
  ronda_group* world = NULL;
  ronda_request* request = NULL;
  int rank = -1, size = 0, last = -1;
  float values[5];
  int64_t count = 1;
  require(ronda_abi_version() == RONDA_ABI_VERSION, "the library of this header");
  require(ronda_version() != NULL, "a version");
  require(ronda_init(NULL, &world) == RONDA_OK, "a group");
  require(ronda_rank(world, &rank) == RONDA_OK && ronda_size(world, &size) == RONDA_OK, "a rank of some");
  for (int i = 0; i < 5; ++i) values[i] = (float)(rank + i);
  require(ronda_allreduce(world, "mean", values, 5, RONDA_FLOAT32, RONDA_MEAN) == RONDA_OK, "an allreduce");
  require(values[3] == (float)(size - 1) / 2 + 3, "a mean");
  require(ronda_allreduce_async(world, "sum", &count, 1, RONDA_INT64, RONDA_SUM, &request) == RONDA_OK, "a request");
  require(ronda_wait(request) == RONDA_OK && count == size, "a sum");
  require(ronda_allreduce(world, "input", NULL, 3, RONDA_FLOAT32, RONDA_SUM) == RONDA_ERROR_INPUT, "an error's status");
  require(ronda_join(world, &last) == RONDA_OK && last >= 0, "ranks that join");
  require(ronda_barrier(world, "end") == RONDA_OK, "a barrier");
  require(ronda_finalize(world) == RONDA_OK, "an end");
  return 0;
}
