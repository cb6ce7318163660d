/* Ronda's parameter server from C: the last rank keeps a point, the others have points of their own, and push the way
 * from it to theirs; so it moves to their mean.
 *
 *     cc key_value.c -o key_value -I<prefix>/include -L<prefix>/lib -lronda -Wl,-rpath,<prefix>/lib
 *     mpirun -n 3 ./key_value */
#include <ronda/ronda_kv.h>

#include <stdio.h>
#include <stdlib.h>

static void require(ronda_status status) {
  char text[1000];
  if (status == RONDA_OK) return;
  ronda_last_error(text, sizeof text);
  fprintf(stderr, "key_value: error %d: %s\n", (int)status, text);
  exit(1);
}

/* Of a worker: 200 rounds. */
static void work(ronda_kv* store, int worker, int workers) {
  const float own[2] = {(float)worker, 1};
  float place[2] = {0, 0}, gradient[2];
  uint64_t updates = 0;
  require(ronda_kv_init(store, "place", place, 2));
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 2; ++i) gradient[i] = place[i] - own[i];
    require(ronda_kv_push(store, "place", gradient, 2));
    require(ronda_kv_pull(store, "place", place, 2));
  }
  require(ronda_kv_version(store, "place", &updates));
  if (worker == 0)
    printf("after %d updates: %.3f, %.3f; the mean is %.3f, 1\n", (int)updates, place[0], place[1],
           (double)(workers - 1) / 2);
}

int main(void) {
  ronda_kv* store;
  int server, index, of;
  require(ronda_kv_open(NULL, &store));
  require(ronda_kv_is_server(store, &server));
  require(ronda_kv_index(store, &index, &of));
  require(ronda_kv_set_optimizer(store, "momentum", 0.1));
  if (server)
    require(ronda_kv_serve(store));
  else
    work(store, index, of);
  require(ronda_kv_close(store));
  return 0;
}
