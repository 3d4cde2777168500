// One block at a time on one processor. Its threads are fibers, which take turns where they wait for
// each other.
#define __shared__ static

namespace emulation {
const int MOST = 1024;

struct Meeting {
  int arrived, generation;
};

extern jmp_buf scheduler, trapped, places[MOST];
extern int current, threads, any;
extern Meeting block, warps[MOST / 32];
extern unsigned long long slots[MOST];
extern unsigned operands[MOST][6];

inline void rest() {
  if (_setjmp(places[current]) == 0) {
    _longjmp(scheduler, 1);
  }
}

inline void meet(Meeting& meeting, int size) {
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

inline int warp_size() {
  int first = current / 32 * 32;
  return threads - first < 32 ? threads - first : 32;
}
}  // namespace emulation

inline void __syncthreads() {
  emulation::meet(emulation::block, emulation::threads);
  threadIdx.x = emulation::current;
}
inline void __syncwarp(unsigned = ~0u) {
  emulation::meet(emulation::warps[emulation::current / 32], emulation::warp_size());
  threadIdx.x = emulation::current;
}
inline int __syncthreads_or(int value) {
  __syncthreads();
  emulation::any = 0;
  __syncthreads();
  emulation::any |= value;
  __syncthreads();
  return emulation::any;
}
inline unsigned __ballot_sync(unsigned, int value) {
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
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline void __trap() { _longjmp(emulation::trapped, 1); }
template <class T>
inline T __shfl_xor_sync(unsigned, T value, int lanes) {
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
template <float WIDEN(unsigned short)>
inline void multiply(float* sums, const unsigned* own) {
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
inline float bf16(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }
}  // namespace emulation

inline void multiply_bf16(
    float* sums, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f) {
  unsigned own[] = {a, b, c, d, e, f};
  emulation::multiply<emulation::bf16>(sums, own);
}
inline void multiply_f16(
    float* sums, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f) {
  unsigned own[] = {a, b, c, d, e, f};
  emulation::multiply<widened_f16>(sums, own);
}

// What PTX's ldmatrix.x4 does: a lane has the address of a line of 8, and gets neighbours of four.
inline void read_matrices(unsigned* to, const void* from, bool transposed) {
  int self = emulation::current, first = self / 32 * 32, line = self % 32 / 4, pair = self % 4 * 2;
  memcpy(&emulation::slots[self], &from, sizeof(from));
  __syncwarp();
  for (int i = 0; i < 4; i++) {
    to[i] = 0;
    for (int j = 0; j < 2; j++) {
      const unsigned short* read;
      int row = transposed ? pair + j : line, column = transposed ? line : pair + j;
      memcpy(&read, &emulation::slots[first + i * 8 + row], sizeof(read));
      to[i] |= (unsigned)read[column] << 16 * j;
    }
  }
  __syncwarp();
}

// A copy that is complete at once; what is not read is 0.
inline void copy_chunk(void* to, const void* from, int bytes) {
  memset(to, 0, 16);
  memcpy(to, from, bytes);
}
