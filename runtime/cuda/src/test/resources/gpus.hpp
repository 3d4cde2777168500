// Several GPUs that run kernels at once, on one processor: every thread is a fiber, and which one
// goes on is drawn at each access to memory that peers share. Words of one access come one by one.

struct uint4 {
  unsigned x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace gpus {
/** A launch, or a copy of so many bytes where there is no kernel. */
struct Step {
  void (*kernel)(const long long*);
  long long blocks, threads;
  const long long* words;
};

/** Addresses that stand for the memory of several ranks. */
struct Multicast {
  char* base;
  long long bytes;
  std::vector<char*> members;
};

struct Fiber;

/** Where the threads of a block, or of a warp, wait for each other. */
struct Gathering {
  int arrived = 0;
  /** They take no turns until the last one comes. */
  std::vector<Fiber*> waiting;
};

struct Block {
  int index, size, left;
  Gathering all;
  std::map<int, Gathering> warps;
  std::map<int, std::vector<unsigned long long>> values;
  /** By the line that declares it. */
  std::map<int, std::vector<uint4>> shared;
};

/** Its first turn is by a context; later ones are by jumps, which cost no system call. */
struct Fiber {
  ucontext_t context;
  jmp_buf place;
  bool begun = false;
  int rank, thread;
  Block* block;
  Step* step;
  /** What has gone to multicast addresses, but is not seen at the others yet. */
  std::vector<std::pair<char*, unsigned>> hidden;
};

extern std::vector<Multicast> multicasts;
/** Those of each rank that take turns. */
extern std::vector<std::vector<Fiber*>> live;
/** Whether the current fiber takes no more turns for now. */
extern bool leaves;
extern jmp_buf scheduler;
extern Fiber* current;
extern unsigned long long state;

inline unsigned draw(unsigned below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (unsigned)(state >> 11) % below;
}

inline void rest() {
  if (_setjmp(current->place) == 0) {
    _longjmp(scheduler, 1);
  }
}

inline void maybe_rest() {
  if (draw(4) == 0) {
    rest();
  }
}

template <class... T>
inline void load(const void* from, T&... out) {
  const char* at = (const char*)from;
  rest();
  ((memcpy(&out, at, sizeof(out)), at += sizeof(out), maybe_rest()), ...);
}

template <class... T>
inline void store(void* to, T... in) {
  char* at = (char*)to;
  ((memcpy(at, &in, sizeof(in)), at += sizeof(in), maybe_rest()), ...);
}

template <class F>
inline void at_each(const void* to, F&& member) {
  for (Multicast& m : multicasts) {
    long long offset = (const char*)to - m.base;
    if (offset >= 0 && offset < m.bytes) {
      for (char* base : m.members) {
        member(base + offset);
      }
      return;
    }
  }
  abort();
}

/** Until here, what went to multicast addresses need not be where other addresses lead. */
inline void fence() {
  auto hidden = std::move(current->hidden);
  current->hidden.clear();
  for (auto& word : hidden) {
    at_each(word.first, [&](char* at) {
      memcpy(at, &word.second, sizeof(word.second));
      maybe_rest();
    });
  }
}

template <class... T>
inline void store_all(void* to, T... in) {
  char* at = (char*)to;
  ((current->hidden.push_back({at, bits_as<unsigned>(in)}), at += sizeof(in)), ...);
  if (draw(2) == 0) {
    fence();
  }
}

struct f32 {
  typedef float Element;
  static float widen(float e) { return e; }
  static float narrow(float sum) { return sum; }
};
struct bf16x2 {
  typedef unsigned short Element;
  static float widen(unsigned short e) { return __uint_as_float((unsigned)e << 16); }
  static unsigned short narrow(float sum) { return rounded_to_bf16(sum); }
};
struct f16x2 {
  typedef unsigned short Element;
  static float widen(unsigned short e) { return widened_f16(e); }
  static unsigned short narrow(float sum) { return rounded_to_f16(sum); }
};

template <class Type>
inline unsigned sum_of(const void* from) {
  typename Type::Element elements[4 / sizeof(typename Type::Element)];
  int e = 0;
  for (auto& element : elements) {
    float sum = 0;
    bool first = true;
    at_each(from, [&](char* at) {
      typename Type::Element own;
      memcpy(&own, at + e * sizeof(own), sizeof(own));
      sum = first ? Type::widen(own) : sum + Type::widen(own);
      first = false;
    });
    element = Type::narrow(sum);
    e++;
  }
  unsigned word;
  memcpy(&word, elements, sizeof(word));
  return word;
}

/** In the order of the members: a switch has one of its own. */
template <class Type, class... T>
inline void load_reduce(const void* from, T&... out) {
  const char* at = (const char*)from;
  rest();
  ((out = sum_of<Type>(at), at += sizeof(out), maybe_rest()), ...);
}

}  // namespace gpus

inline void gather(gpus::Gathering& place, int size) {
  if (++place.arrived == size) {
    place.arrived = 0;
    auto& live = gpus::live[gpus::current->rank];
    live.insert(live.end(), place.waiting.begin(), place.waiting.end());
    place.waiting.clear();
    return;
  }
  place.waiting.push_back(gpus::current);
  gpus::leaves = true;
  gpus::rest();
}

inline void __syncthreads() { gather(gpus::current->block->all, gpus::current->block->size); }

/** All threads of a warp, and no others, come here. */
template <class T>
inline T __shfl_xor_sync(unsigned, T value, int distance) {
  gpus::Block* block = gpus::current->block;
  int thread = gpus::current->thread, warp = thread / 32;
  int size = block->size - warp * 32 < 32 ? block->size - warp * 32 : 32;
  auto& values = block->values[warp];
  values.resize(32);
  memcpy(&values[thread % 32], &value, sizeof(value));
  gather(block->warps[warp], size);
  T other;
  memcpy(&other, &values[thread % 32 ^ distance], sizeof(other));
  gather(block->warps[warp], size);
  return other;
}

/** An array of the block's, by the line that declares it. */
template <class T>
inline T* shared_array(int line, size_t count) {
  auto& place = gpus::current->block->shared[line];
  place.resize((count * sizeof(T) + sizeof(uint4) - 1) / sizeof(uint4));
  return (T*)place.data();
}

inline unsigned atomicAdd(unsigned* at, unsigned value) {
  gpus::maybe_rest();
  unsigned before = *at;
  *at += value;
  return before;
}
