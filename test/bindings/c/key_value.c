/* ronda_kv.h, used as it says and wrongly. With the argument `leaves` a worker gives up, and the others say why;
 * with `fails` an update does. */
#include <ronda/ronda_kv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT 1000

static int failures = 0;

static void require(int holds, const char* what, int line) {
  char text[1000] = "";
  if (holds) return;
  ronda_last_error(text, sizeof text);
  fprintf(stderr, "FAILED in line %d: %s (last error: %s)\n", line, what, text);
  ++failures;
}
#define REQUIRE(condition) require((condition), #condition, __LINE__)

/* That `status` is this one, and that the text says so much. */
static int fails(ronda_status status, ronda_status expected, const char* part) {
  char text[1000] = "";
  ronda_last_error(text, sizeof text);
  return status == expected && strstr(text, part) != NULL;
}

/* Adds twice the gradient; counts its calls. */
static int adds_twice(const ronda_kv_part* part, uint64_t updates, float* values, const float* gradient,
                      void* context) {
  for (size_t i = 0; i < part->count; ++i) values[i] += 2 * gradient[i];
  ++*(int*)context;
  return strcmp(part->key, "values") == 0 && part->total == COUNT && updates < 3 ? 0 : 1;
}

static void open_wrongly(void) {
  ronda_kv* store = NULL;
  ronda_kv_options options;
  REQUIRE(fails(ronda_kv_default_options(NULL, sizeof options), RONDA_ERROR_INPUT, "NULL"));
  REQUIRE(fails(ronda_kv_default_options(&options, 1), RONDA_ERROR_INPUT, "size of 1"));
  REQUIRE(fails(ronda_kv_open(NULL, NULL), RONDA_ERROR_INPUT, "store is NULL"));
  REQUIRE(fails(ronda_kv_open_comm(0, NULL, &store), RONDA_ERROR_LOGIC, "not initialised"));
  REQUIRE(ronda_kv_default_options(&options, sizeof options) == RONDA_OK);
  options.size = 3;
  REQUIRE(fails(ronda_kv_open(&options, &store), RONDA_ERROR_INPUT, "size of 3"));
  options.size = sizeof options;
  options.servers = 0; /* and MPI is not begun */
  REQUIRE(fails(ronda_kv_open(&options, &store), RONDA_ERROR_INPUT, ".servers = 0"));
  options.servers = 1;
  options.part_bytes = 65;
  REQUIRE(fails(ronda_kv_open(&options, &store), RONDA_ERROR_INPUT, "multiple of 64"));
  REQUIRE(store == NULL);
}

static void work(ronda_kv* store, int worker, int workers) {
  float values[COUNT], gradient[COUNT];
  uint64_t updates = 7;
  for (int i = 0; i < COUNT; ++i) values[i] = (float)i;
  REQUIRE(fails(ronda_kv_push(store, "values", gradient, COUNT), RONDA_ERROR_LOGIC, "init it first"));
  REQUIRE(fails(ronda_kv_init(store, NULL, values, COUNT), RONDA_ERROR_INPUT, "key is NULL"));
  REQUIRE(fails(ronda_kv_init(store, "values", NULL, COUNT), RONDA_ERROR_INPUT, "values is NULL"));
  REQUIRE(fails(ronda_kv_serve(store), RONDA_ERROR_LOGIC, "serve is for servers"));
  REQUIRE(fails(ronda_kv_init(store, "values", values, (size_t)-1), RONDA_ERROR_INPUT, "more than memory can have"));
  REQUIRE(ronda_kv_init(store, "values", values, COUNT) == RONDA_OK);
  REQUIRE(ronda_kv_version(store, "values", &updates) == RONDA_OK && updates == 0);
  REQUIRE(fails(ronda_kv_pull(store, "values", values, 1), RONDA_ERROR_LOGIC, "initialised with 1000"));
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < COUNT; ++i) gradient[i] = (float)(worker + 1); /* the mean is (workers + 1) / 2 */
    REQUIRE(ronda_kv_push(store, "values", gradient, COUNT) == RONDA_OK);
    REQUIRE(ronda_kv_pull(store, "values", values, COUNT) == RONDA_OK);
    for (int i = 0; i < COUNT; i += 333) {
      const float difference = values[i] - (float)i - (float)(round * (workers + 1));
      REQUIRE(difference < 1e-3F && difference > -1e-3F);
    }
    REQUIRE(ronda_kv_version(store, "values", &updates) == RONDA_OK && updates == (uint64_t)round);
  }
  REQUIRE(ronda_kv_barrier(store) == RONDA_OK);
}

static int leave(ronda_kv* store, int server, int worker) {
  float value = 1;
  char text[1000];
  ronda_status status;
  if (server) {
    status = ronda_kv_serve(store);
  } else {
    if (ronda_kv_init(store, "value", &value, 1) != RONDA_OK) return 3;
    if (worker == 0) {
      status = ronda_kv_leave(store, "it has an error of its own");
      sleep(5); /* mpirun ends the others when one has gone */
      return status == RONDA_OK ? 1 : 3;
    }
    ronda_kv_push(store, "value", &value, 1);
    status = ronda_kv_pull(store, "value", &value, 1); /* of a round that does not end */
  }
  if (status != RONDA_ERROR_COMMUNICATION) return 3;
  ronda_last_error(text, sizeof text);
  if (server) fprintf(stderr, "ronda: error: %s\n", text);
  if (ronda_kv_close(store) != RONDA_ERROR_COMMUNICATION) return 3;
  if (!server) sleep(5);
  return 1;
}

static int returns_7(const ronda_kv_part* part, uint64_t updates, float* values, const float* gradient, void* context) {
  (void)part, (void)updates, (void)values, (void)gradient, (void)context;
  return 7;
}

/* The server's calls say what its update returned, and those of the workers fail. */
static int fail(ronda_kv* store, int server) {
  float value = 1;
  char text[1000];
  if (ronda_kv_set_updater(store, returns_7, NULL) != RONDA_OK) return 3;
  if (!server) {
    if (ronda_kv_init(store, "value", &value, 1) != RONDA_OK) return 3;
    ronda_kv_push(store, "value", &value, 1);
    if (ronda_kv_pull(store, "value", &value, 1) != RONDA_ERROR_COMMUNICATION) return 3;
    if (ronda_kv_close(store) != RONDA_ERROR_COMMUNICATION) return 3; /* the server waits for that */
    sleep(5);                                                         /* mpirun ends the others when one has gone */
    return 1;
  }
  if (ronda_kv_serve(store) != RONDA_ERROR_INPUT) return 3;
  ronda_last_error(text, sizeof text);
  fprintf(stderr, "ronda: error: %s\n", text);
  return ronda_kv_close(store) == RONDA_ERROR_COMMUNICATION ? 1 : 3;
}

/* Beside one that is open. The first is as it was. */
static void open_again(void) {
  ronda_kv* second = NULL;
  REQUIRE(fails(ronda_kv_open(NULL, &second), RONDA_ERROR_LOGIC, "MPI"));
  REQUIRE(second == NULL);
}

int main(int argc, char** argv) {
  ronda_kv* store = NULL;
  ronda_kv_options options;
  int server = -1, index = -1, of = 0, calls = 0;
  open_wrongly();
  REQUIRE(ronda_kv_default_options(&options, sizeof options) == RONDA_OK);
  REQUIRE(ronda_kv_open(&options, &store) == RONDA_OK);
  if (store == NULL) return 1;
  open_again();
  REQUIRE(ronda_kv_is_server(store, &server) == RONDA_OK && ronda_kv_index(store, &index, &of) == RONDA_OK);
  if (argc > 1 && strcmp(argv[1], "leaves") == 0) return leave(store, server, index);
  if (argc > 1 && strcmp(argv[1], "fails") == 0) return fail(store, server);
  REQUIRE(fails(ronda_kv_set_optimizer(store, "nothing", 0.1), RONDA_ERROR_INPUT, "nothing"));
  REQUIRE(fails(ronda_kv_set_updater(store, NULL, NULL), RONDA_ERROR_INPUT, "NULL"));
  REQUIRE(ronda_kv_set_updater(store, adds_twice, &calls) == RONDA_OK);
  if (server) {
    REQUIRE(of == 1 && index == 0);
    REQUIRE(fails(ronda_kv_barrier(store), RONDA_ERROR_LOGIC, "barrier is for workers"));
    REQUIRE(ronda_kv_serve(store) == RONDA_OK);
    REQUIRE(calls == 3);
  } else {
    work(store, index, of);
    REQUIRE(calls == 0);
  }
  REQUIRE(ronda_kv_close(store) == RONDA_OK);
  return failures == 0 ? 0 : 1;
}
