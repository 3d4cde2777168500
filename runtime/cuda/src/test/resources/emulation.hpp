// One block, or cluster of blocks, at a time on one processor. Its threads are fibers, which take
// turns where they wait for each other. Blocks of a cluster have whole warps.
#define __shared__ static

namespace emulation {
const int MOST = 1024;
const int MOST_BLOCKS = 2;

struct Meeting {
  int arrived, generation;
};

extern jmp_buf scheduler, trapped, places[MOST];
/** The number of a fiber, of the threads of each block, of blocks, and of fibers before their end. */
extern int current, threads, blocks, running;
extern int first_block, any[MOST_BLOCKS];
extern Meeting cluster, whole[MOST_BLOCKS], warps[MOST / 32];
extern unsigned long long slots[MOST];
extern unsigned operands[MOST][6];

inline int thread() { return current % threads; }
inline int block() { return current / threads; }

inline void resume() {
  threadIdx.x = thread();
  blockIdx.x = first_block + block();
}

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
  int first = thread() / 32 * 32;
  return threads - first < 32 ? threads - first : 32;
}
}  // namespace emulation

inline void __syncthreads() {
  emulation::meet(emulation::whole[emulation::block()], emulation::threads);
  emulation::resume();
}
inline void __syncwarp(unsigned = ~0u) {
  emulation::meet(emulation::warps[emulation::current / 32], emulation::warp_size());
  emulation::resume();
}
inline int __syncthreads_or(int value) {
  __syncthreads();
  int& any = emulation::any[emulation::block()];
  any = 0;
  __syncthreads();
  any |= value;
  __syncthreads();
  return any;
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
inline T __shfl_sync(unsigned, T value, int lane) {
  int self = emulation::current;
  memcpy(&emulation::slots[self], &value, sizeof(T));
  __syncwarp();
  T got;
  memcpy(&got, &emulation::slots[self / 32 * 32 + lane], sizeof(T));
  __syncwarp();
  return got;
}
template <class T>
inline T __shfl_xor_sync(unsigned, T value, int lanes) {
  int self = emulation::current;
  memcpy(&emulation::slots[self], &value, sizeof(T));
  __syncwarp();
  int other = self ^ lanes;
  T got = value;
  if (other < emulation::threads * emulation::blocks) {
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
inline float f16(unsigned short bits) { return widened_f16(bits); }
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

// What Hopper GPUs have. Shared memory that a launch gives begins at an address that is a multiple of
// 16 bytes only.
namespace emulation {
const unsigned DYNAMIC_AT = 1024 + 16;
const unsigned DYNAMIC_BYTES = 227 << 10;

/** Its phase ends when all have arrived, and all bytes that they announced. */
struct Barrier {
  int arrivals, missing;
  unsigned phase;
  long long bytes;

  void end_phase() {
    if (missing == 0 && bytes == 0) {
      missing = arrivals;
      phase ^= 1;
    }
  }
};

extern unsigned char dynamic[MOST_BLOCKS][DYNAMIC_BYTES];
extern Barrier barriers[MOST_BLOCKS][DYNAMIC_BYTES / 8];
extern Meeting some[MOST_BLOCKS][16];
extern float right_elements[MOST / 32][256][16];

inline Barrier& barrier_at(unsigned at) {
  // The hardware takes multiples of 8 bytes only.
  if ((at & 7) != 0 || at < DYNAMIC_AT || at >= DYNAMIC_AT + DYNAMIC_BYTES) {
    __trap();
  }
  return barriers[block()][(at - DYNAMIC_AT) / 8];
}

inline void init_barrier(unsigned at, int arrivals) {
  barrier_at(at) = Barrier{arrivals, arrivals, 0, 0};
}

inline void arrive(unsigned at, int bytes) {
  Barrier& barrier = barrier_at(at);
  barrier.bytes += bytes;
  barrier.missing--;
  barrier.end_phase();
}

/** The phase that is named is over when another one is under way. */
inline void await(unsigned at, unsigned phase) {
  while (barrier_at(at).phase == phase) {
    rest();
  }
  resume();
}

inline void meet_some(int number, int size) {
  meet(some[block()][number], size);
  resume();
}

/** All threads of the cluster that have not ended. */
inline void meet_cluster() {
  int generation = cluster.generation;
  cluster.arrived++;
  while (cluster.generation == generation) {
    if (cluster.arrived == running) {
      cluster.arrived = 0;
      cluster.generation++;
    } else {
      rest();
    }
  }
  resume();
}

inline unsigned char* shared(unsigned at) {
  if (at < DYNAMIC_AT || at >= DYNAMIC_AT + DYNAMIC_BYTES) {
    __trap();
  }
  return dynamic[block()] + (at - DYNAMIC_AT);
}

/** Addresses of all blocks' shared memory follow each other. */
inline unsigned in_block(unsigned at, int other) {
  shared(at);
  if (other < 0 || other >= blocks) {
    __trap();
  }
  return at - DYNAMIC_AT + (other + 1) * (1 << 20);
}

template <int COUNT>
inline void read_sums(float (&to)[COUNT], unsigned from) {
  unsigned other = (from >> 20) - 1, at = from & ((1 << 20) - 1);
  if (other >= (unsigned)blocks || at % sizeof(to) != 0 || at + sizeof(to) > DYNAMIC_BYTES) {
    __trap();
  }
  memcpy(to, dynamic[other] + at, sizeof(to));
}

/** The address of 16 bytes depends on the line of 128 bytes that they are in. */
inline unsigned permuted(unsigned at) { return at ^ (at >> 7 & 7) << 4; }

/** As EmulatedSession lays it out. */
struct TensorMap {
  const unsigned short* from;
  long long near, lines, pitch, matrices, matrix_pitch, box_lines;
};

inline void load(unsigned to, const void* words, int near, int line, int matrix, unsigned at) {
  TensorMap map;
  memcpy(&map, words, sizeof(map));
  // A copy from elsewhere ends the kernel with an illegal instruction.
  if (near % 8 != 0 || to % 1024 != 0) {
    __trap();
  }
  for (int i = 0; i < map.box_lines; i++) {
    for (int j = 0; j < 64; j++) {
      bool inside = line >= 0 && line + i < map.lines && near >= 0 && near + j < map.near &&
          matrix >= 0 && matrix < map.matrices;
      unsigned short element = inside
          ? map.from[matrix * map.matrix_pitch + (line + i) * map.pitch + near + j]
          : 0;
      memcpy(shared(permuted(to + i * 128 + j * 2)), &element, sizeof(element));
    }
  }
  barrier_at(at).bytes -= map.box_lines * 128;
  barrier_at(at).end_phase();
}

/** An element of an operand, which a descriptor says where to find. */
inline unsigned short element(unsigned long long boxes, bool across, int line, int inner) {
  unsigned at = (boxes & 0x3fff) << 4;
  unsigned next_box = (boxes >> 16 & 0x3fff) << 4;
  unsigned next_eight = (boxes >> 32 & 0x3fff) << 4;
  if (boxes >> 62 != 1) {
    __trap();
  }
  at += across ? line / 64 * next_box + inner / 8 * next_eight + inner % 8 * 128 + line % 64 * 2
               : line / 8 * next_eight + line % 8 * 128 + inner * 2;
  unsigned short element;
  memcpy(&element, shared(permuted(at)), sizeof(element));
  return element;
}

/** What PTX's wgmma does for one of its 128 threads. */
template <float WIDEN(unsigned short)>
void multiply_boxes(
    float* sums, unsigned long long left, unsigned long long right, int columns, bool left_across,
    bool right_across);
}  // namespace emulation

inline size_t __cvta_generic_to_shared(const void* at) {
  return (const unsigned char*)at - emulation::dynamic[emulation::block()] + emulation::DYNAMIC_AT;
}
