/* ronda_kv.h: the key-value store from C. The last rank is the server. */
#include <ronda/ronda_kv.h>

#include <stdio.h>
#include <stdlib.h>

static void require(int holds, const char* what) {
  char text[1000] = "";
  if (holds) return;
  ronda_last_error(text, sizeof text);
  fprintf(stderr, "expected %s (last error: %s)\n", what, text);
  exit(1);
}

static void work(ronda_kv* store) {
  float place[2] = {0, 0}, gradient[2];
  uint64_t updates = 0;
  require(ronda_kv_init(store, "place", place, 2) == RONDA_OK, "a value");
  for (int round = 0; round < 30; ++round) {
    gradient[0] = place[0] - 3;
    gradient[1] = place[1] + 1;
    require(ronda_kv_push(store, "place", gradient, 2) == RONDA_OK, "a push");
    require(ronda_kv_pull(store, "place", place, 2) == RONDA_OK, "a pull");
  }
  require(place[0] > 2.99F && place[0] < 3.01F && place[1] < -0.99F, "a value that follows its gradients");
  require(ronda_kv_version(store, "place", &updates) == RONDA_OK && updates == 30, "an update a round");
  require(ronda_kv_barrier(store) == RONDA_OK, "a barrier");
}

int main(void) {
  ronda_kv* store = NULL;
  ronda_kv_options options;
  int server = -1, index = -1, of = 0;
  require(ronda_kv_default_options(&options, sizeof options) == RONDA_OK, "options");
  options.servers = 1;
  options.communication_timeout = 30;
  require(ronda_kv_open(&options, &store) == RONDA_OK, "a store");
  require(ronda_kv_is_server(store, &server) == RONDA_OK && ronda_kv_index(store, &index, &of) == RONDA_OK, "a role");
  require(index >= 0 && index < of, "a place among the workers, or the servers");
  require(ronda_kv_set_optimizer(store, "sgd", 0.5) == RONDA_OK, "an optimizer");
  if (server)
    require(ronda_kv_serve(store) == RONDA_OK, "a server that serves");
  else
    work(store);
  require(ronda_kv_close(store) == RONDA_OK, "an end");
  return 0;
}
