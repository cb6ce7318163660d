#ifndef RONDA_H
#define RONDA_H
/* Ronda for C, and for every language that calls C: named tensors, handed in by any thread of any rank in any order,
 * are reduced over all ranks. What stands behind it is described in docs/coordinator.md.
 *
 *     ronda_group* world;
 *     if (ronda_init(NULL, &world) != RONDA_OK) ...          start it with mpirun; alone it is one rank
 *     ronda_allreduce(world, "gradient", data, count, RONDA_FLOAT32, RONDA_MEAN);
 *     ronda_finalize(world);
 *
 * Rules. Every function that returns a ronda_status returns RONDA_OK or says with ronda_last_error what went wrong;
 * none ends the process, or prints unless it was asked to. Unless it says otherwise a function may be called by any
 * thread at any time. A pointer that may not be NULL and is one gives RONDA_ERROR_INPUT. Data belongs to the caller,
 * who leaves it alone and in place until the call, or the wait for it, has returned. A handle is gone once it was
 * waited for, closed or finalized, and what is done with it then is undefined; so is what a forked child does with any
 * of them.
 *
 * Names. A name stands for the same on all ranks (what is done, count, type, operation) and is for use again and again;
 * it may be in flight once at a time on a rank. NULL makes one of what is done, count, type and operation. The n-th use
 * of a name on one rank belongs to the n-th on every other: what was given up because a rank did not come fails also on
 * that rank, once, when it comes. A rank that joins begins anew.
 *
 * Compatibility. RONDA_ABI_VERSION changes when a program must be built anew; the shared library's name carries it.
 * Values of enumerations never change; structures that may grow start with their own size. */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RONDA_ABI_VERSION 1

typedef enum ronda_status {
  RONDA_OK = 0,
  RONDA_ERROR_INPUT = 1,         /* an argument that cannot work, or an environment that cannot */
  RONDA_ERROR_LOGIC = 2,         /* a use that this file forbids (a root or colour that cannot be, a name in flight
                                    twice), or ranks that submit different things */
  RONDA_ERROR_COMMUNICATION = 3, /* other ranks did not come, or went away; MPI failed */
  RONDA_ERROR_RESOURCE = 4,      /* memory ran out */
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
  RONDA_AND = 5 /* of integers, bit by bit */
} ronda_op;

typedef struct ronda_group ronda_group;     /* the ranks that reduce together */
typedef struct ronda_request ronda_request; /* tensors under way */

typedef struct ronda_tensor {
  void* data;
  size_t count; /* elements */
  ronda_dtype dtype;
} ronda_tensor;

typedef struct ronda_options {
  size_t size;                  /* as given to ronda_default_options, which sets it */
  double communication_timeout; /* seconds that a rank is waited for which takes no part any more: it is dead, stopped,
                                   or cut off from the network. Then every call of the others ends with an error.
                                   60 unless it is set; 0: for ever */
  double missing_warning; /* seconds after which on_warning hears of a tensor that some ranks have not submitted, or of
                             ranks that wait in ronda_join, ronda_finalize or ronda_close; then again each time that the
                             wait is twice as long. 60 unless it is set; 0: never */
  double missing_limit;   /* seconds after which that fails. 0, as it is unless it is set: never, since a rank may be at
                             its own work for as long as it likes */
  size_t batch_bytes;     /* a power of two; 0: tuned */
  double gather_seconds;  /* less than 0: tuned */
  void (*on_warning)(const char* text, /* a line of ranks that are late, or of what the ranks had to do without, such as
                                          shared memory; on every rank */
                     void* context);   /* called by a thread of Ronda's, which goes on when it returns; may call nothing
                                          of this file */
  void* context;
  int print_warnings; /* other than 0: the first rank of each group prints these lines on standard error as well */
} ronda_options;

/* RONDA_ABI_VERSION of the library, which must be that of this file; and its version, "0.1.0". */
int ronda_abi_version(void);
const char* ronda_version(void);

/* What the last call of this thread that did not return RONDA_OK had to say: copies it into `text`, cut to fit `size`
 * and ended by a zero, and returns its whole length. `text` may be NULL where `size` is 0. */
size_t ronda_last_error(char* text, size_t size);

/* `size` is sizeof(ronda_options) as the program was compiled with: of an older one no more is written. */
ronda_status ronda_default_options(ronda_options* options, size_t size);

/* Starts MPI, on a thread of the library's, and makes the group of all ranks; `options` may be NULL. To be called once,
 * by one thread, on all ranks. `*world` is written where it returns RONDA_OK. */
ronda_status ronda_init(const ronda_options* options, ronda_group** world);
/* The same in a program that has MPI: over the communicator with this Fortran handle (MPI_Comm_c2f; comm.py2f() in
 * mpi4py). MPI must have been initialised with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE; from this call to
 * ronda_finalize other threads may call it with the latter alone. */
ronda_status ronda_init_comm(int communicator, const ronda_options* options, ronda_group** world);
/* Waits until all ranks have called it, then frees the group, whatever it returns; ends MPI if ronda_init started it.
 * No other thread may use the group any more. */
ronda_status ronda_finalize(ronda_group* world);

ronda_status ronda_rank(const ronda_group* group, int* rank);
ronda_status ronda_size(const ronda_group* group, int* size);

/* These return when it is done. */
ronda_status ronda_allreduce(ronda_group* group, const char* name, void* data, size_t count, ronda_dtype dtype,
                             ronda_op op);
ronda_status ronda_broadcast(ronda_group* group, const char* name, void* data, size_t count, ronda_dtype dtype,
                             int root);
/* `all` has size times `count` elements: everybody's `mine`, by rank. */
ronda_status ronda_allgather(ronda_group* group, const char* name, const void* mine, void* all, size_t count,
                             ronda_dtype dtype);
ronda_status ronda_barrier(ronda_group* group, const char* name);

/* These return at once, with a request that must be waited for. */
ronda_status ronda_allreduce_async(ronda_group* group, const char* name, void* data, size_t count, ronda_dtype dtype,
                                   ronda_op op, ronda_request** request);
ronda_status ronda_broadcast_async(ronda_group* group, const char* name, void* data, size_t count, ronda_dtype dtype,
                                   int root, ronda_request** request);
/* Several tensors under one name, which may not be NULL: all are reduced in one cycle, or none. */
ronda_status ronda_allreduce_together(ronda_group* group, const char* name, const ronda_tensor* tensors,
                                      size_t tensor_count, ronda_op op, ronda_request** request);
/* Sets `*done` to 1 where a wait would return at once, 0 otherwise. */
ronda_status ronda_test(const ronda_request* request, int* done);
/* Waits, frees the request, and returns how it ended. By one thread. */
ronda_status ronda_wait(ronda_request* request);

/* This rank has no more data: until all have joined it counts as zeros in sums and means (over all ranks), as ones in
 * products, and so on. Returns when all have; `*last`, where it is not NULL, is the last of them. */
ronda_status ronda_join(ronda_group* group, int* last);

/* A group of the ranks that give the same colour, 0 or more, ordered by key, then rank. All ranks of `group` call it
 * with this name. */
ronda_status ronda_split(ronda_group* group, const char* name, int color, int key, ronda_group** part);
/* Waits until all its ranks have called it, then frees it, whatever it returns. Before ronda_finalize. */
ronda_status ronda_close(ronda_group* part);

#ifdef __cplusplus
}
#endif
#endif
