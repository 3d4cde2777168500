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

template <float WIDEN(unsigned short)>
void multiply_boxes(
    float* sums, unsigned long long left, unsigned long long right, int columns, bool left_across,
    bool right_across) {
  // The lanes of a warp read the right operand together.
  auto read = right_elements[current / 32];
  for (int column = current % 32; column < columns; column += 32) {
    for (int k = 0; k < 16; k++) {
      read[column][k] = WIDEN(element(right, right_across, column, k));
    }
  }
  __syncwarp();
  int line = thread() % 128 / 32 * 16 + current % 32 / 4, pair = current % 4 * 2;
  float own[2][16];
  for (int k = 0; k < 16; k++) {
    own[0][k] = WIDEN(element(left, left_across, line, k));
    own[1][k] = WIDEN(element(left, left_across, line + 8, k));
  }
  for (int i = 0; i < columns / 2; i++) {
    int column = i / 4 * 8 + pair + i % 2;
    for (int k = 0; k < 16; k++) {
      sums[i] += own[i / 2 % 2][k] * read[column][k];
    }
  }
  __syncwarp();
}

template void multiply_boxes<bf16>(
    float*, unsigned long long, unsigned long long, int, bool, bool);
template void multiply_boxes<f16>(float*, unsigned long long, unsigned long long, int, bool, bool);
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
