#ifndef RONDA_KV_H
#define RONDA_KV_H
/* Ronda's parameter server for C, and for every language that calls C: some ranks, the servers, keep named float32
 * values and update them; the others, the workers, push gradients and pull values. docs/key_value.md describes it.
 *
 *     ronda_kv* store;
 *     if (ronda_kv_open(NULL, &store) != RONDA_OK) ...       start it with mpirun, two ranks or more
 *     ronda_kv_set_optimizer(store, "sgd", 0.1);
 *     ronda_kv_is_server(store, &server);
 *     if (server) {
 *       ronda_kv_serve(store);                                until all workers have closed
 *     } else {
 *       ronda_kv_init(store, "weights", weights, count);      all workers; the first one's values count
 *       for (...) {
 *         ronda_kv_push(store, "weights", gradient, count);
 *         ronda_kv_pull(store, "weights", weights, count);
 *       }
 *     }
 *     ronda_kv_close(store);
 *
 * Rules. What ronda.h says of statuses and of NULL holds here, and ronda_last_error has the text. A store is used by
 * one thread, the one that opened it. A process opens one store, and has no group of ronda.h beside it, as both start
 * MPI. After RONDA_ERROR_COMMUNICATION a store is only for ronda_kv_close. */
#include <ronda/ronda.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ronda_kv ronda_kv;

typedef struct ronda_kv_options {
  size_t size;               /* as given to ronda_kv_default_options, which sets it */
  int servers;               /* ranks that are servers, the last ones. 1 unless it is set */
  const int* server_ranks;   /* other than NULL: these ranks instead, `servers` of them */
  int asynchronous;          /* other than 0: each gradient is applied as it comes. Else rounds: their mean is */
  int replicas_to_aggregate; /* gradients in a round; 0, as it is unless it is set: of all workers */
  int64_t max_staleness;     /* asynchronous: a worker that has pushed a key so many times more often than the slowest
                                waits. Less than 0, as it is unless it is set: none waits */
  size_t part_bytes;         /* longer values are cut into parts; a multiple of 64. 0: 4 MiB */
  double communication_timeout; /* as in ronda_options */
  size_t ahead_bytes; /* of each worker's gradients that a server keeps for later rounds: a push beyond it waits.
                         0: 256 MiB */
} ronda_kv_options;

/* A part of a value, for an update. */
typedef struct ronda_kv_part {
  const char* key;
  size_t begin; /* its first element in the value */
  size_t count; /* its elements */
  size_t total; /* the value's elements */
} ronda_kv_part;

/* Changes `values` by `gradient`; both have part->count elements. Called on a server, in ronda_kv_serve. `updates`: how
 * often this part was updated before. Returns 0, or else every call of every worker fails. */
typedef int (*ronda_kv_update)(const ronda_kv_part* part, uint64_t updates, float* values, const float* gradient,
                               void* context);

/* `size` is sizeof(ronda_kv_options) as the program was compiled with. */
ronda_status ronda_kv_default_options(ronda_kv_options* options, size_t size);

/* Starts MPI; `options` may be NULL. To be called on all ranks. `*store` is written where it returns RONDA_OK. Options
 * that no number of ranks makes right are refused before MPI starts, which cannot start again. */
ronda_status ronda_kv_open(const ronda_kv_options* options, ronda_kv** store);
/* The same in a program that has MPI: over the communicator with this Fortran handle. The program ends MPI itself,
 * after ronda_kv_close. */
ronda_status ronda_kv_open_comm(int communicator, const ronda_kv_options* options, ronda_kv** store);

ronda_status ronda_kv_is_server(const ronda_kv* store, int* server);
/* Which of the workers, or of the servers, this rank is, and how many of them there are. */
ronda_status ronda_kv_index(const ronda_kv* store, int* index, int* of);

/* How servers update; the workers give the same. Before ronda_kv_serve. Without, what is pushed replaces the value. By
 * an optimizer of Ronda's that updates each number by itself (sgd, momentum, nesterov, adam, adamw, ...), with its
 * usual numbers; a learning rate of 0 is its usual one. */
ronda_status ronda_kv_set_optimizer(ronda_kv* store, const char* name, double learning_rate);
ronda_status ronda_kv_set_updater(ronda_kv* store, ronda_kv_update update, void* context);

/* The servers'. Returns when all workers have closed; or fails, as when an update does, and then ronda_kv_close is what
 * is left to do. */
ronda_status ronda_kv_serve(ronda_kv* store);

/* The workers'. All give the same keys and sizes to ronda_kv_init. */
ronda_status ronda_kv_init(ronda_kv* store, const char* key, const float* values, size_t count);
/* Returns when the servers have the gradient, and no more than ahead_bytes of this worker's wait for later rounds. */
ronda_status ronda_kv_push(ronda_kv* store, const char* key, const float* gradient, size_t count);
/* In rounds: waits for the round that this worker has pushed to. */
ronda_status ronda_kv_pull(ronda_kv* store, const char* key, float* values, size_t count);
/* Updates of the value that this worker has pulled last; 0 before. */
ronda_status ronda_kv_version(const ronda_kv* store, const char* key, uint64_t* updates);
/* Returns when all workers that have not closed have called it. */
ronda_status ronda_kv_barrier(ronda_kv* store);

/* A worker needs nothing more; a server has served. Frees the store, whatever it returns, and ends MPI if ronda_kv_open
 * started it, unless something has failed. */
ronda_status ronda_kv_close(ronda_kv* store);
/* A worker gives up, and `why` is what the others hear: their calls fail. Frees the store; MPI is left as it is. */
ronda_status ronda_kv_leave(ronda_kv* store, const char* why);

#ifdef __cplusplus
}
#endif
#endif
