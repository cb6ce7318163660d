#pragma once

/// Marks a function whose loops are compiled for several instruction sets; the loader picks the best for the processor.
/// All of Ronda's own loops are dispatched this way. All versions round alike: contraction is off and fused
/// multiply-adds are written explicitly, so the bits do not depend on the processor. Exceptions are the files listed in
/// the build (fused_convolution.cpp and others), which use fused multiply-adds if the processor has them. Sanitizers
/// cannot run the loader's resolvers, so sanitized builds compile only the baseline.
///
/// Each such function is aligned to a cache line: with chance alignment an allreduce of 2 MiB over four ranks was an
/// eighth slower. (Clang does not accept an alignment together with target_clones.)
#if !defined(__x86_64__) || defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define RONDA_MULTIVERSION
#elif defined(__clang__)
#define RONDA_MULTIVERSION __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define RONDA_MULTIVERSION __attribute__((aligned(64), target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif

/// A lambda that must be inlined into the RONDA_MULTIVERSION function around it, to be compiled for each instruction
/// set.
#define RONDA_INLINE __attribute__((always_inline))
