// One block at a time on one processor. Its threads are fibers, which take turns where they wait for
// each other.
#define __shared__ static

namespace emulation {
const int MOST = 1024;
const size_t STACK = 32 << 10;

struct Meeting {
  int arrived, generation;
};

// A fiber's first step is by its context; later ones by jumps, which cost no system call.
static ucontext_t origin, fibers[MOST];
static jmp_buf scheduler, places[MOST];
static bool begun[MOST], done[MOST];
static char* stacks;
static int current, threads, running;
static Meeting block, warps[MOST / 32];
static unsigned long long slots[MOST];
static void (*kernel)(const long long*);
static const long long* words;

static void rest() {
  if (_setjmp(places[current]) == 0) {
    _longjmp(scheduler, 1);
  }
}

/** One block after the other. */
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
  threadIdx.x = fiber;
  if (_setjmp(scheduler) == 0) {
    if (begun[fiber]) {
      _longjmp(places[fiber], 1);
    }
    begun[fiber] = true;
    swapcontext(&origin, &fibers[fiber]);
  }
}

static void meet(Meeting& meeting, int size) {
  int generation = meeting.generation;
  if (++meeting.arrived == size) {
    meeting.arrived = 0;
    meeting.generation++;
    return;
  }
  while (meeting.generation == generation) {
    rest();
  }
}

static int warp_size() {
  int first = current / 32 * 32;
  return threads - first < 32 ? threads - first : 32;
}

/** False where threads wait for each other that never meet. */
static bool run(bool backwards) {
  for (int t = 0; t < threads; t++) {
    // One that has not come to its end still waits in an earlier block.
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
  running = threads;
  block = Meeting();
  memset(warps, 0, sizeof(warps));
  for (long round = 0; running > 0; round++) {
    if (round > 1000000) {
      return false;
    }
    for (int i = 0; i < threads; i++) {
      int t = backwards ? threads - 1 - i : i;
      if (!done[t]) {
        step(t);
      }
    }
  }
  return block.arrived == 0;
}
}  // namespace emulation

static void __syncthreads() {
  emulation::meet(emulation::block, emulation::threads);
  threadIdx.x = emulation::current;
}
static void __syncwarp(unsigned = ~0u) {
  emulation::meet(emulation::warps[emulation::current / 32], emulation::warp_size());
  threadIdx.x = emulation::current;
}
static int __syncthreads_or(int value) {
  static int any;
  __syncthreads();
  any = 0;
  __syncthreads();
  any |= value;
  __syncthreads();
  return any;
}
static unsigned __ballot_sync(unsigned, int value) {
  int self = emulation::current;
  memcpy(&emulation::slots[self], &value, sizeof(value));
  __syncwarp();
  unsigned all = 0;
  for (int lane = 0; lane < emulation::warp_size(); lane++) {
    int other;
    memcpy(&other, &emulation::slots[self / 32 * 32 + lane], sizeof(other));
    all |= (other != 0 ? 1u : 0u) << lane;
  }
  __syncwarp();
  return all;
}
static int __popc(unsigned bits) { return __builtin_popcount(bits); }
static void __trap() { abort(); }
template <class T>
static T __shfl_xor_sync(unsigned, T value, int lanes) {
  int self = emulation::current;
  memcpy(&emulation::slots[self], &value, sizeof(T));
  __syncwarp();
  int other = self ^ lanes;
  T got = value;
  if (other < emulation::threads) {
    memcpy(&got, &emulation::slots[other], sizeof(T));
  }
  __syncwarp();
  return got;
}

// What PTX's mma.sync.m16n8k16 does: lanes hold pairs of neighbours of the operands.
namespace emulation {
static unsigned operands[MOST][6];
template <float WIDEN(unsigned short)>
static void multiply(float* sums, const unsigned* own) {
  int self = current;
  memcpy(operands[self], own, sizeof(operands[self]));
  __syncwarp();
  int first = self / 32 * 32, line = self % 32 / 4, pair = self % 4;
  for (int i = 0; i < 4; i++) {
    int row = line + i / 2 * 8, column = pair * 2 + i % 2;
    for (int k = 0; k < 16; k++) {
      int lane = k % 8 / 2;
      unsigned left = operands[first + row % 8 * 4 + lane][row / 8 + k / 8 * 2];
      unsigned right = operands[first + column * 4 + lane][4 + k / 8];
      sums[i] += WIDEN(left >> k % 2 * 16 & 0xffff) * WIDEN(right >> k % 2 * 16 & 0xffff);
    }
  }
  __syncwarp();
}
static float bf16(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }
}  // namespace emulation

static void multiply_bf16(
    float* sums, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f) {
  unsigned own[] = {a, b, c, d, e, f};
  emulation::multiply<emulation::bf16>(sums, own);
}
static void multiply_f16(
    float* sums, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f) {
  unsigned own[] = {a, b, c, d, e, f};
  emulation::multiply<widened_f16>(sums, own);
}

extern "C" int launch(
    void (*kernel)(const long long*), int meets, int blocks, int threads, const long long* words,
    int backwards) {
  if (emulation::stacks == nullptr) {
    emulation::stacks = (char*)malloc(emulation::MOST * emulation::STACK);
  }
  emulation::kernel = kernel;
  emulation::words = words;
  emulation::threads = threads;
  gridDim.x = blocks;
  blockDim.x = threads;
  for (int b = 0; b < blocks; b++) {
    blockIdx.x = backwards ? blocks - 1 - b : b;
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
