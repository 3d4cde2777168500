// The turns of the fibers: compiled once, and linked into every library of kernels.
#include <stdlib.h>
#include <ucontext.h>
#include <map>
#include <vector>

Index threadIdx, blockIdx, blockDim, gridDim;

namespace gpus {
/** The tops of these lie in lines of the cache that do not displace each other. */
const size_t STACK = (24 << 10) + 5 * 64 - 16;
/** From 2 to the first of these powers to 2 to the second one. */
const int STANDSTILL[] = {11, 15};

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

struct Thread;

/** Where the threads of a block, or of a warp, wait for each other. */
struct Gathering {
  int arrived = 0;
  /** They take no turns until the last one comes. */
  std::vector<Thread*> waiting;
};

struct Block {
  int index, size, left;
  Gathering all;
  std::map<int, Gathering> warps;
  std::map<int, std::vector<unsigned long long>> values;
  /** By the line that declares it. */
  std::map<int, std::vector<uint4>> shared;
};

struct Thread : Fiber {
  ucontext_t context;
  bool begun = false;
  int rank;
  Block* block;
  Step* step;
  /** What has gone to multicast addresses, but is not seen at the others yet. */
  std::vector<std::pair<char*, unsigned>> hidden;
};

struct Rank {
  Step* steps;
  int count, step, next, running;
};

jmp_buf scheduler;
Fiber* current;
unsigned long long state;
static std::vector<Multicast> multicasts;
/** Those of each rank that take turns. */
static std::vector<std::vector<Thread*>> live;
/** Whether the current fiber takes no more turns for now. */
static bool leaves;
static ucontext_t origin;
static std::vector<Thread*> spare;
static bool ended;

static Thread& own() { return *static_cast<Thread*>(current); }

int members(const void* to, char** addresses) {
  for (Multicast& m : multicasts) {
    long long offset = (const char*)to - m.base;
    if (offset >= 0 && offset < m.bytes) {
      for (char* base : m.members) {
        *addresses++ = base + offset;
      }
      return m.members.size();
    }
  }
  abort();
}

void hide(char* at, unsigned word) { own().hidden.push_back({at, word}); }

void fence() {
  auto hidden = std::move(own().hidden);
  own().hidden.clear();
  for (auto& word : hidden) {
    at_each(word.first, [&](char* at) {
      memcpy(at, &word.second, sizeof(word.second));
      maybe_rest();
    });
  }
}

static void gather(Gathering& place, int size) {
  if (++place.arrived == size) {
    place.arrived = 0;
    auto& all = live[own().rank];
    all.insert(all.end(), place.waiting.begin(), place.waiting.end());
    place.waiting.clear();
    return;
  }
  place.waiting.push_back(&own());
  leaves = true;
  rest();
}

void gather_block() { gather(own().block->all, own().block->size); }

void gather_warp() {
  int warp = own().thread / 32, rest = own().block->size - warp * 32;
  gather(own().block->warps[warp], rest < 32 ? rest : 32);
}

unsigned long long* values() {
  auto& values = own().block->values[own().thread / 32];
  values.resize(32);
  return values.data();
}

void* shared_memory(int line, size_t bytes) {
  auto& place = own().block->shared[line];
  place.resize((bytes + sizeof(uint4) - 1) / sizeof(uint4));
  return place.data();
}

/** Gives the current fiber a turn. */
static void resume() {
  if (_setjmp(scheduler) == 0) {
    if (own().begun) {
      _longjmp(current->place, 1);
    }
    own().begun = true;
    swapcontext(&origin, &own().context);
  }
}

/** One thread after the other. */
static void body() {
  while (true) {
    own().step->kernel(own().step->words);
    fence();
    ended = true;
    leaves = true;
    rest();
  }
}

static Thread* fresh() {
  Thread* fiber = new Thread();
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
    Thread* fiber;
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
    live[index].push_back(fiber);
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

extern "C" void multicast(char* base, long long bytes, int ranks, char** members) {
  if (ranks > gpus::MAX_RANKS) {
    abort();
  }
  gpus::multicasts.push_back({base, bytes, std::vector<char*>(members, members + ranks)});
}

/** Returns how often fibers took turns; -1 where it was more often than the limit, or none can. */
extern "C" long long run(
    int ranks, gpus::Step** steps, const int* counts, long long seed, long long limit) {
  using namespace gpus;
  state = seed * 0x9e3779b97f4a7c15ull + 1;
  live.assign(ranks, {});
  std::vector<Rank> all;
  for (int r = 0; r < ranks; r++) {
    all.push_back({steps[r], counts[r], 0, 0, 0});
  }
  int still = ranks;
  long long until = 0;
  for (long long turn = 0; turn < limit; turn++) {
    int awake = 0;
    for (auto& own : live) {
      awake += own.size();
    }
    // Now and then a rank gets on with its next block; that of slow ones later.
    if (awake == 0 || draw(64) == 0) {
      int first = draw(ranks);
      bool more = false;
      for (int i = 0; i < ranks && (i == 0 || awake == 0); i++) {
        int r = (first + i) % ranks;
        awake -= live[r].size();
        more |= advance(all[r], r);
        awake += live[r].size();
      }
      if (awake == 0) {
        bool done = !more;
        for (Rank& rank : all) {
          done &= rank.step == rank.count;
        }
        if (done) {
          return turn;
        }
        if (!more) {
          return -1;
        }
        continue;
      }
    }
    // Ranks stand still for a while, so that others get as far ahead as they may.
    if (turn >= until) {
      still = draw(ranks + 1);
      until = turn + (1 << (STANDSTILL[0] + draw(STANDSTILL[1] - STANDSTILL[0])));
    }
    int standing = still < ranks && (int)live[still].size() < awake ? still : ranks;
    int chosen = draw(awake - (standing < ranks ? live[standing].size() : 0));
    int rank = 0;
    while (rank == standing || chosen >= (int)live[rank].size()) {
      chosen -= rank == standing ? 0 : live[rank].size();
      rank++;
    }
    auto& turns = live[rank];
    Thread* thread = turns[chosen];
    current = thread;
    threadIdx.x = thread->thread;
    blockIdx.x = thread->block->index;
    blockDim.x = thread->step->threads;
    gridDim.x = thread->step->blocks;
    ended = false;
    leaves = false;
    resume();
    if (leaves) {
      turns[chosen] = turns.back();
      turns.pop_back();
    }
    if (ended) {
      if (--thread->block->left == 0) {
        delete thread->block;
        all[thread->rank].running--;
      }
      spare.push_back(thread);
    }
  }
  return -1;
}
