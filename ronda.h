#ifndef RONDA_H
#define RONDA_H
/* Ronda for C, and for every language that calls C: named tensors, submitted by any thread of any rank in any order,
 * are reduced over all ranks. The coordinator behind this interface is described in docs/coordinator.md.
 *
 *     ronda_group* world;
 *     if (ronda_init(NULL, &world) != RONDA_OK) ...          start it with mpirun; without, it is one rank
 *     ronda_allreduce(world, "gradient", data, count, RONDA_FLOAT32, RONDA_MEAN);
 *     ronda_finalize(world);
 *
 * Rules. Every function that returns a ronda_status returns RONDA_OK, or an error that ronda_last_error describes. No
 * function ends the process, or prints unless requested. Functions may be called by any thread at any time unless
 * stated otherwise. NULL for a pointer that must not be NULL gives RONDA_ERROR_INPUT. Data belongs to the caller, who
 * must not access, move or free it until the call, or the wait for its request, has returned. A handle that was waited
 * for, closed or finalized must not be used again: its use is undefined. So is the use of any handle in a forked child.
 *
 * Names. A name denotes the same collective on all ranks (kind, count, type, operation) and can be reused; it may be in
 * flight only once at a time on a rank. For NULL a name is made from kind, count, type and operation. The n-th call
 * with a name matches the n-th call with that name on every other rank. If a collective was aborted because a rank was
 * late, that rank's matching call fails too, once. A rank that joins starts counting anew.
 *
 * Compatibility. RONDA_ABI_VERSION changes when programs must be recompiled; it is part of the shared library's name.
 * Values of enumerations never change; structures that may grow start with their own size. */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RONDA_ABI_VERSION 1

typedef enum ronda_status {
  RONDA_OK = 0,
  RONDA_ERROR_INPUT = 1,         /* an invalid argument or environment */
  RONDA_ERROR_LOGIC = 2,         /* a use that this file forbids (an invalid root or colour, a name in flight twice), or
                                    ranks whose submissions differ */
  RONDA_ERROR_COMMUNICATION = 3, /* other ranks were late, failed or left; MPI failed */
  RONDA_ERROR_RESOURCE = 4,      /* out of memory */
  RONDA_ERROR_OTHER = 5
} ronda_status;

typedef enum ronda_dtype {
  RONDA_FLOAT32 = 0,
  RONDA_FLOAT64 = 1,
  RONDA_INT32 = 2,
  RONDA_UINT8 = 3,
  RONDA_FLOAT16 = 4,  /* IEEE 754 binary16, as uint16_t */
  RONDA_BFLOAT16 = 5, /* the upper half of a float32, as uint16_t */
  RONDA_INT8 = 6,
  RONDA_INT64 = 7
} ronda_dtype;

typedef enum ronda_op {
  RONDA_SUM = 0,
  RONDA_MEAN = 1, /* of integers: exact, rounded towards zero. Sums and products of integers wrap around */
  RONDA_MIN = 2,
  RONDA_MAX = 3,
  RONDA_PRODUCT = 4,
  RONDA_AND = 5 /* integers only, bitwise */
} ronda_op;

typedef struct ronda_group ronda_group;     /* the ranks that reduce together */
typedef struct ronda_request ronda_request; /* tensors in flight */

typedef struct ronda_tensor {
  void* data;
  size_t count; /* elements */
  ronda_dtype dtype;
} ronda_tensor;

typedef struct ronda_options {
  size_t size;                  /* set by ronda_default_options to the size that it is given */
  double communication_timeout; /* seconds to wait for a rank that takes part in nothing: it is dead, stopped, or cut
                                   off from the network. Then every call of the other ranks ends with an error. Default
                                   60; 0: no limit */
  double missing_warning; /* seconds after which on_warning reports a tensor that some ranks have not submitted, or
                             ranks that wait in ronda_join, ronda_finalize or ronda_close. Repeated each time the wait
                             has doubled. Default 60; 0: never */
  double missing_limit;   /* seconds after which such a wait fails. Default 0: never, since a rank may compute for any
                             time */
  size_t batch_bytes;     /* a power of two; 0: tuned */
  double gather_seconds;  /* negative: tuned */
  void (*on_warning)(const char* text, /* a line about late ranks, or about a fallback, such as missing shared memory;
                                          on every rank */
                     void* context);   /* called by a thread of Ronda, which waits until it returns; must not call
                                          functions of this file */
  void* context;
  int print_warnings; /* nonzero: the first rank of each group also prints these lines on standard error */
} ronda_options;

/* RONDA_ABI_VERSION of the library, which must equal that of this file; the library's version, "0.1.0". */
int ronda_abi_version(void);
const char* ronda_version(void);

/* The error text of this thread's last call that did not return RONDA_OK. Copies it into `text`, truncated to `size`
 * bytes including the terminating zero, and returns its full length. `text` may be NULL if `size` is 0. */
size_t ronda_last_error(char* text, size_t size);

/* `size` is sizeof(ronda_options) at compile time; at most so many bytes are written, for programs compiled with an
 * older, smaller structure. */
ronda_status ronda_default_options(ronda_options* options, size_t size);

/* Starts MPI, on a thread of the library, and makes the group of all ranks; `options` may be NULL. Called once, by one
 * thread, on all ranks. `*world` is written if it returns RONDA_OK. */
ronda_status ronda_init(const ronda_options* options, ronda_group** world);
/* The same for a program that initialises MPI itself: over the communicator with this Fortran handle (MPI_Comm_c2f;
 * comm.py2f() in mpi4py). MPI must have been initialised with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE. Until
 * ronda_finalize other threads may call MPI only with MPI_THREAD_MULTIPLE. */
ronda_status ronda_init_comm(int communicator, const ronda_options* options, ronda_group** world);
/* Waits until all ranks have called it, then frees the group, whatever it returns; ends MPI if ronda_init started it.
 * No other thread may use the group during or after this call. */
ronda_status ronda_finalize(ronda_group* world);

ronda_status ronda_rank(const ronda_group* group, int* rank);
ronda_status ronda_size(const ronda_group* group, int* size);

/* Blocking collectives: return when done. */
ronda_status ronda_allreduce(ronda_group* group, const char* name, void* data, size_t count, ronda_dtype dtype,
                             ronda_op op);
ronda_status ronda_broadcast(ronda_group* group, const char* name, void* data, size_t count, ronda_dtype dtype,
                             int root);
/* Concatenates `mine` of all ranks, by rank, in `all`, which has size times `count` elements. */
ronda_status ronda_allgather(ronda_group* group, const char* name, const void* mine, void* all, size_t count,
                             ronda_dtype dtype);
ronda_status ronda_barrier(ronda_group* group, const char* name);

/* Nonblocking collectives: return at once, with a request that must be waited for. */
ronda_status ronda_allreduce_async(ronda_group* group, const char* name, void* data, size_t count, ronda_dtype dtype,
                                   ronda_op op, ronda_request** request);
ronda_status ronda_broadcast_async(ronda_group* group, const char* name, void* data, size_t count, ronda_dtype dtype,
                                   int root, ronda_request** request);
/* Reduces several tensors under one name, which must not be NULL, in one cycle: all or none. */
ronda_status ronda_allreduce_together(ronda_group* group, const char* name, const ronda_tensor* tensors,
                                      size_t tensor_count, ronda_op op, ronda_request** request);
/* Sets `*done` to 1 if ronda_wait would return at once, otherwise to 0. */
ronda_status ronda_test(const ronda_request* request, int* done);
/* Waits, frees the request, and returns the collective's status. To be called by one thread only. */
ronda_status ronda_wait(ronda_request* request);

/* Marks this rank as out of data: until all ranks have joined, it contributes zeros to sums and means (which are over
 * all ranks), ones to products, and so on. Returns when all ranks have joined; `*last`, if `last` is not NULL, is the
 * rank that joined last. */
ronda_status ronda_join(ronda_group* group, int* last);

/* Makes a group of the ranks that give the same colour, 0 or more, ordered by key, then rank. All ranks of `group` call
 * it with this name. */
ronda_status ronda_split(ronda_group* group, const char* name, int color, int key, ronda_group** part);
/* Waits until all ranks of `part` have called it, then frees it, whatever it returns. Call it before ronda_finalize. */
ronda_status ronda_close(ronda_group* part);

#ifdef __cplusplus
}
#endif
#endif
