// The turns of the fibers: compiled once, and linked into every library of kernels.

Index threadIdx, blockIdx, blockDim, gridDim;

namespace gpus {
/** The tops of these lie in lines of the cache that do not displace each other. */
const size_t STACK = (24 << 10) + 5 * 64 - 16;
/** From 2 to the first of these powers to 2 to the second one. */
const int STANDSTILL[] = {11, 15};

struct Rank {
  Step* steps;
  int count, step, next, running;
};

std::vector<Multicast> multicasts;
std::vector<std::vector<Fiber*>> live;
bool leaves;
jmp_buf scheduler;
Fiber* current;
unsigned long long state;
static ucontext_t origin;
static std::vector<Fiber*> spare;
static bool ended;

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

/** One thread after the other. */
static void body() {
  while (true) {
    current->step->kernel(current->step->words);
    fence();
    ended = true;
    leaves = true;
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
    auto& own = live[rank];
    current = own[chosen];
    threadIdx.x = current->thread;
    blockIdx.x = current->block->index;
    blockDim.x = current->step->threads;
    gridDim.x = current->step->blocks;
    ended = false;
    leaves = false;
    resume();
    if (leaves) {
      own[chosen] = own.back();
      own.pop_back();
    }
    if (ended) {
      if (--current->block->left == 0) {
        delete current->block;
        all[current->rank].running--;
      }
      spare.push_back(current);
    }
  }
  return -1;
}
