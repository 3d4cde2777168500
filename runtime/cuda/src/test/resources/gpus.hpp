// Several GPUs that run kernels at once, on one processor: every thread is a fiber, and which one
// goes on is drawn at each access to memory that peers share. Words of one access come one by one.

struct uint4 {
  unsigned x, y, z, w;
};
static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace gpus {
const size_t STACK = 24 << 10;
const int STANDSTILL = 10000;

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

/** Where the threads of a block, or of a warp, wait for each other. */
struct Gathering {
  int arrived = 0, generation = 0;
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

struct Rank {
  Step* steps;
  int count, step, next, running;
};

static std::vector<Multicast> multicasts;
static ucontext_t origin;
static jmp_buf scheduler;
static std::vector<Fiber*> live, spare;
static Fiber* current;
static bool ended;
static unsigned long long state;

static unsigned draw(unsigned below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (unsigned)(state >> 11) % below;
}

static void rest() {
  if (_setjmp(current->place) == 0) {
    _longjmp(scheduler, 1);
  }
}

/** Gives the current fiber a turn. */
static void resume() {
  if (_setjmp(scheduler) == 0) {
    if (current->begun) {
      _longjmp(current->place, 1);
    }
    current->begun = true;
    swapcontext(&origin, &current->context);
  }
}

static void maybe_rest() {
  if (draw(4) == 0) {
    rest();
  }
}

template <class... T>
static void load(const void* from, T&... out) {
  const char* at = (const char*)from;
  rest();
  ((memcpy(&out, at, sizeof(out)), at += sizeof(out), maybe_rest()), ...);
}

template <class... T>
static void store(void* to, T... in) {
  char* at = (char*)to;
  ((memcpy(at, &in, sizeof(in)), at += sizeof(in), maybe_rest()), ...);
}

template <class F>
static void at_each(const void* to, F&& member) {
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
static void fence() {
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
static void store_all(void* to, T... in) {
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
static unsigned sum_of(const void* from) {
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
static void load_reduce(const void* from, T&... out) {
  const char* at = (const char*)from;
  rest();
  ((out = sum_of<Type>(at), at += sizeof(out), maybe_rest()), ...);
}

/** One thread after the other. */
static void body() {
  while (true) {
    current->step->kernel(current->step->words);
    fence();
    ended = true;
    rest();
  }
}

static Fiber* fresh() {
  Fiber* fiber = new Fiber();
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = malloc(STACK);
  fiber->context.uc_stack.ss_size = STACK;
  fiber->context.uc_link = nullptr;
  makecontext(&fiber->context, body, 0);
  return fiber;
}

static void begin(Rank& rank, int index) {
  Step& step = rank.steps[rank.step];
  if (step.kernel == nullptr) {
    memcpy((void*)step.words[0], (const void*)step.words[1], step.words[2]);
    return;
  }
  Block* block = new Block{rank.next, (int)step.threads, (int)step.threads};
  for (int t = 0; t < step.threads; t++) {
    Fiber* fiber;
    if (spare.empty()) {
      fiber = fresh();
    } else {
      fiber = spare.back();
      spare.pop_back();
    }
    fiber->rank = index;
    fiber->thread = t;
    fiber->block = block;
    fiber->step = &step;
    live.push_back(fiber);
  }
  rank.running++;
}

/** Begins a block, if one may: a few at once, and a step's only when the one before has ended. */
static bool advance(Rank& rank, int index) {
  if (rank.step == rank.count || rank.running == 2) {
    return false;
  }
  Step& step = rank.steps[rank.step];
  if (rank.next < step.blocks) {
    begin(rank, index);
    rank.next++;
    return true;
  }
  if (rank.running == 0) {
    rank.step++;
    rank.next = 0;
    return true;
  }
  return false;
}
}  // namespace gpus

static void gather(gpus::Gathering& place, int size) {
  int generation = place.generation;
  if (++place.arrived == size) {
    place.arrived = 0;
    place.generation++;
    return;
  }
  while (place.generation == generation) {
    gpus::rest();
  }
}

static void __syncthreads() { gather(gpus::current->block->all, gpus::current->block->size); }

/** All threads of a warp, and no others, come here. */
template <class T>
static T __shfl_xor_sync(unsigned, T value, int distance) {
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
static T* shared_array(int line, size_t count) {
  auto& place = gpus::current->block->shared[line];
  place.resize((count * sizeof(T) + sizeof(uint4) - 1) / sizeof(uint4));
  return (T*)place.data();
}

static unsigned atomicAdd(unsigned* at, unsigned value) {
  gpus::maybe_rest();
  unsigned before = *at;
  *at += value;
  return before;
}

extern "C" void multicast(char* base, long long bytes, int ranks, char** members) {
  gpus::multicasts.push_back({base, bytes, std::vector<char*>(members, members + ranks)});
}

/** Returns how often fibers took turns; -1 where it was more often than the limit. */
extern "C" long long run(
    int ranks, gpus::Step** steps, const int* counts, long long seed, long long limit) {
  using namespace gpus;
  state = seed * 0x9e3779b97f4a7c15ull + 1;
  live.clear();
  std::vector<Rank> all;
  for (int r = 0; r < ranks; r++) {
    all.push_back({steps[r], counts[r], 0, 0, 0});
  }
  int still = ranks;
  for (long long turn = 0; turn < limit; turn++) {
    // Now and then a rank gets on with its next block; that of slow ones later.
    if (live.empty() || draw(64) == 0) {
      int first = draw(ranks);
      bool more = false;
      for (int i = 0; i < ranks && (i == 0 || live.empty()); i++) {
        int r = (first + i) % ranks;
        more |= advance(all[r], r);
      }
      if (live.empty()) {
        bool done = !more;
        for (Rank& rank : all) {
          done &= rank.step == rank.count;
        }
        if (done) {
          return turn;
        }
        continue;
      }
    }
    // Ranks stand still for a while, so that others get as far ahead as they may.
    if (turn % STANDSTILL == 0) {
      still = draw(ranks + 1);
    }
    int chosen = draw(live.size());
    for (int i = 0; i < 16 && live[chosen]->rank == still; i++) {
      chosen = draw(live.size());
    }
    current = live[chosen];
    threadIdx.x = current->thread;
    blockIdx.x = current->block->index;
    blockDim.x = current->step->threads;
    gridDim.x = current->step->blocks;
    ended = false;
    resume();
    if (ended) {
      if (--current->block->left == 0) {
        delete current->block;
        all[current->rank].running--;
      }
      spare.push_back(current);
      live[chosen] = live.back();
      live.pop_back();
    }
  }
  return -1;
}
