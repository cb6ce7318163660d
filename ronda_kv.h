#ifndef RONDA_KV_H
#define RONDA_KV_H
/* Ronda's parameter server for C, and for every language that calls C: some ranks, the servers, store named float32
 * values and update them; the others, the workers, push gradients and pull values. See docs/key_value.md.
 *
 *     ronda_kv* store;
 *     if (ronda_kv_open(NULL, &store) != RONDA_OK) ...       start it with mpirun, two ranks or more
 *     ronda_kv_set_optimizer(store, "sgd", 0.1);
 *     ronda_kv_is_server(store, &server);
 *     if (server) {
 *       ronda_kv_serve(store);                                until all workers have closed
 *     } else {
 *       ronda_kv_init(store, "weights", weights, count);      all workers; the first one's values are stored
 *       for (...) {
 *         ronda_kv_push(store, "weights", gradient, count);
 *         ronda_kv_pull(store, "weights", weights, count);
 *       }
 *     }
 *     ronda_kv_close(store);
 *
 * Rules. The rules of ronda.h for statuses and NULL apply, and ronda_last_error returns the error text. A store is used
 * by one thread, the one that opened it. A process opens one store, and cannot also have a group of ronda.h, as both
 * start MPI. After RONDA_ERROR_COMMUNICATION only ronda_kv_close may be called. */
#include <ronda/ronda.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ronda_kv ronda_kv;

typedef struct ronda_kv_options {
  size_t size;               /* set by ronda_kv_default_options to the size that it is given */
  int servers;               /* number of servers: the last ranks. Default 1 */
  const int* server_ranks;   /* not NULL: these ranks instead, `servers` of them */
  int asynchronous;          /* nonzero: each gradient is applied on arrival. 0: in rounds, by their mean */
  int replicas_to_aggregate; /* gradients per round. Default 0: one from each worker */
  int64_t max_staleness;     /* asynchronous: a worker waits if it has more than this many pushes of a key more than the
                                slowest worker. Default -1; negative: no worker waits */
  size_t part_bytes;         /* longer values are divided into parts; a multiple of 64. 0: 4 MiB */
  double communication_timeout; /* as in ronda_options */
  size_t ahead_bytes; /* bytes of a worker's gradients that a server stores for later rounds: further pushes wait. 0:
                         256 MiB */
} ronda_kv_options;

/* A part of a value, for an update. */
typedef struct ronda_kv_part {
  const char* key;
  size_t begin; /* its first element in the value */
  size_t count; /* elements of the part */
  size_t total; /* elements of the value */
} ronda_kv_part;

/* Updates `values` by `gradient`; both have part->count elements. Called on a server, in ronda_kv_serve. `updates` is
 * the number of earlier updates of this part. Returns 0; for any other result every call of every worker fails. */
typedef int (*ronda_kv_update)(const ronda_kv_part* part, uint64_t updates, float* values, const float* gradient,
                               void* context);

/* `size` is sizeof(ronda_kv_options) at compile time. */
ronda_status ronda_kv_default_options(ronda_kv_options* options, size_t size);

/* Starts MPI; `options` may be NULL. Called on all ranks. `*store` is written if it returns RONDA_OK. Options that are
 * invalid for any number of ranks are refused before MPI starts, because MPI can start only once. */
ronda_status ronda_kv_open(const ronda_kv_options* options, ronda_kv** store);
/* The same for a program that initialises MPI itself: over the communicator with this Fortran handle. The program
 * finalizes MPI itself, after ronda_kv_close. */
ronda_status ronda_kv_open_comm(int communicator, const ronda_kv_options* options, ronda_kv** store);

ronda_status ronda_kv_is_server(const ronda_kv* store, int* server);
/* Index of this rank among the workers, or among the servers, and their number. */
ronda_status ronda_kv_index(const ronda_kv* store, int* index, int* of);

/* Sets how servers update values; called on all ranks with equal arguments, before ronda_kv_serve. Without it, a pushed
 * gradient replaces the value. ronda_kv_set_optimizer takes an optimizer of Ronda that updates each number by itself
 * (sgd, momentum, nesterov, adam, adamw, ...), with its default options; a learning rate of 0 is its default rate. */
ronda_status ronda_kv_set_optimizer(ronda_kv* store, const char* name, double learning_rate);
ronda_status ronda_kv_set_updater(ronda_kv* store, ronda_kv_update update, void* context);

/* For servers. Returns when all workers have closed, or with an error, for example if an update fails; then only
 * ronda_kv_close may be called. */
ronda_status ronda_kv_serve(ronda_kv* store);

/* For workers. All give the same keys and sizes to ronda_kv_init. */
ronda_status ronda_kv_init(ronda_kv* store, const char* key, const float* values, size_t count);
/* Returns when the servers have received the gradient, and at most ahead_bytes of this worker's gradients wait for
 * later rounds. */
ronda_status ronda_kv_push(ronda_kv* store, const char* key, const float* gradient, size_t count);
/* In rounds: waits for the round of this worker's last push. */
ronda_status ronda_kv_pull(ronda_kv* store, const char* key, float* values, size_t count);
/* Number of updates in the value that this worker has pulled last; 0 before. */
ronda_status ronda_kv_version(const ronda_kv* store, const char* key, uint64_t* updates);
/* Returns when all workers that have not closed have called it. */
ronda_status ronda_kv_barrier(ronda_kv* store);

/* Closes the store: a worker after its last call, a server after ronda_kv_serve. Frees the store, whatever it returns,
 * and ends MPI if ronda_kv_open started it, unless a call has failed. */
ronda_status ronda_kv_close(ronda_kv* store);
/* For a worker that fails: the calls of the other workers then fail with the reason `why`. Frees the store; MPI is not
 * finalized. */
ronda_status ronda_kv_leave(ronda_kv* store, const char* why);

#ifdef __cplusplus
}
#endif
#endif
