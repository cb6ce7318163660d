#pragma once

/// Marks a function whose loops are compiled for several instruction sets; the loader picks one for the processor at
/// hand. This is the one place of dispatch for our own loops. All versions round alike: contraction is off and fused
/// multiply-adds are written out, so the bits do not depend on the processor. (But for files that the build
/// names, fused_convolution.cpp and others, whose vectors are multiplied and added in one where the processor can.)
/// Sanitizers cannot run the loader's resolvers, and get the baseline alone.
///
/// Such a function begins at a cache line. Else the linker decides by chance how its loops lie, which made an allreduce
/// of 2 MiB over four ranks an eighth slower. (Clang takes no alignment beside target_clones.)
#if !defined(__x86_64__) || defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define RONDA_MULTIVERSION
#elif defined(__clang__)
#define RONDA_MULTIVERSION __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define RONDA_MULTIVERSION __attribute__((aligned(64), target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif

/// A lambda that must become part of the RONDA_MULTIVERSION function it is written in, and so of every instruction set.
#define RONDA_INLINE __attribute__((always_inline))
