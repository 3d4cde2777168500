// Several GPUs that run kernels at once, on one processor: every thread is a fiber, and which one
// goes on is drawn at each access to memory that peers share. Words of one access come one by one.

namespace gpus {
/** A thread of a kernel. Its first turn is by a context; later ones are by jumps, which cost no
 * system call. */
struct Fiber {
  jmp_buf place;
  int thread;
};

extern jmp_buf scheduler;
extern Fiber* current;
extern unsigned long long state;

const int MAX_RANKS = 8;

/** Where a multicast address leads: so many addresses, those of the ranks. */
int members(const void* to, char** addresses);

/** A word has gone to a multicast address, but is not seen at the others yet. */
void hide(char* at, unsigned word);

/** Until here, what went to multicast addresses need not be where other addresses lead. */
void fence();

/** Waits for the other threads of the block, or of the warp. */
void gather_block();
void gather_warp();

/** A place for a value of each of the warp's threads. */
unsigned long long* values();

/** Memory of the block, by the line that declares it. */
void* shared_memory(int line, size_t bytes);

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
  char* addresses[MAX_RANKS];
  int count = members(to, addresses);
  for (int i = 0; i < count; i++) {
    member(addresses[i]);
  }
}

template <class... T>
inline void store_all(void* to, T... in) {
  char* at = (char*)to;
  ((hide(at, bits_as<unsigned>(in)), at += sizeof(in)), ...);
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

inline void __syncthreads() { gpus::gather_block(); }

/** All threads of a warp, and no others, come here. */
template <class T>
inline T __shfl_xor_sync(unsigned, T value, int distance) {
  int lane = gpus::current->thread % 32;
  unsigned long long* values = gpus::values();
  memcpy(&values[lane], &value, sizeof(value));
  gpus::gather_warp();
  T other;
  memcpy(&other, &values[lane ^ distance], sizeof(other));
  gpus::gather_warp();
  return other;
}

/** An array of the block's, by the line that declares it. */
template <class T>
inline T* shared_array(int line, size_t count) {
  return (T*)gpus::shared_memory(line, count * sizeof(T));
}

inline unsigned atomicAdd(unsigned* at, unsigned value) {
  gpus::maybe_rest();
  unsigned before = *at;
  *at += value;
  return before;
}
