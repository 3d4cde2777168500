// The turns of the fibers: compiled once, and linked into every library of kernels.
#include <stdlib.h>
#include <ucontext.h>

Index threadIdx, blockIdx, blockDim, gridDim;

namespace emulation {
const size_t STACK = 32 << 10;

jmp_buf scheduler, trapped, places[MOST];
int current, threads, blocks, running;
int first_block, any[MOST_BLOCKS];
Meeting cluster, whole[MOST_BLOCKS], warps[MOST / 32];
unsigned long long slots[MOST];
unsigned operands[MOST][6];
// Not at a multiple of more than 16 bytes.
alignas(16) unsigned char dynamic[MOST_BLOCKS][DYNAMIC_BYTES];
Barrier barriers[MOST_BLOCKS][DYNAMIC_BYTES / 8];
Meeting some[MOST_BLOCKS][16];
float right_elements[MOST / 32][256][16];

// A fiber's first step is by its context; later ones by jumps, which cost no system call.
static ucontext_t origin, fibers[MOST];
static bool begun[MOST], done[MOST];
static char* stacks;
static void (*kernel)(const long long*);
static const long long* words;

/** One cluster after the other. */
static void body() {
  while (true) {
    kernel(words);
    done[current] = true;
    running--;
    rest();
  }
}

static void step(int fiber) {
  current = fiber;
  resume();
  if (_setjmp(scheduler) == 0) {
    if (begun[fiber]) {
      _longjmp(places[fiber], 1);
    }
    begun[fiber] = true;
    swapcontext(&origin, &fibers[fiber]);
  }
}

/** False where threads wait for each other that never meet. */
static bool run(bool backwards) {
  int all = threads * blocks;
  for (int t = 0; t < all; t++) {
    // One that has not come to its end still waits in an earlier cluster.
    if (!done[t]) {
      getcontext(&fibers[t]);
      fibers[t].uc_stack.ss_sp = stacks + t * STACK;
      fibers[t].uc_stack.ss_size = STACK;
      fibers[t].uc_link = nullptr;
      makecontext(&fibers[t], body, 0);
      begun[t] = false;
    }
    done[t] = false;
  }
  running = all;
  cluster = Meeting();
  memset(whole, 0, sizeof(whole));
  memset(warps, 0, sizeof(warps));
  memset(some, 0, sizeof(some));
  // Nothing remains from the cluster before.
  memset(dynamic, -1, blocks * sizeof(dynamic[0]));
  for (long round = 0; running > 0; round++) {
    if (round > 1000000) {
      return false;
    }
    for (int i = 0; i < all; i++) {
      int t = backwards ? all - 1 - i : i;
      if (!done[t]) {
        step(t);
      }
    }
  }
  int waiting = cluster.arrived;
  for (int b = 0; b < blocks; b++) {
    waiting += whole[b].arrived;
  }
  return waiting == 0;
}
}  // namespace emulation

/** 0 for a kernel that came to its end, 1 for one whose threads never meet, 2 for one that traps. */
extern "C" int launch(
    void (*kernel)(const long long*), int meets, int blocks, int cluster, int threads,
    const long long* words, int backwards) {
  if (emulation::stacks == nullptr) {
    emulation::stacks = (char*)malloc(emulation::MOST * emulation::STACK);
  }
  emulation::kernel = kernel;
  emulation::words = words;
  emulation::threads = threads;
  emulation::blocks = cluster;
  gridDim.x = blocks;
  blockDim.x = threads;
  if (_setjmp(emulation::trapped) != 0) {
    return 2;
  }
  for (int b = 0; b < blocks; b += cluster) {
    emulation::first_block = blockIdx.x = backwards ? blocks - cluster - b : b;
    if (meets) {
      if (!emulation::run(backwards)) {
        return 1;
      }
    } else {
      for (int t = 0; t < threads; t++) {
        threadIdx.x = backwards ? threads - 1 - t : t;
        kernel(words);
      }
    }
  }
  return 0;
}
