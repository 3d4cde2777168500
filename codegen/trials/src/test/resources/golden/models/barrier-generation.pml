#define N 3
#define TIMES 3

byte missing = N, generation;
byte came[N];

inline meet(me) {
  d_step {
    mine = generation;
    missing--;
    if
    :: missing == 0 -> missing = N; generation++
    :: else
    fi
  }
  generation != mine
}

proctype rank(byte me) {
  byte times, mine, i;
  do
  :: times < TIMES ->
    came[me]++;
    meet(me);
    times++;
    d_step {
      for (i : 0 .. N - 1) {
        assert(came[i] >= times)
      }
    }
  :: else -> break
  od
}

init {
  atomic {
    run rank(0);
    run rank(1);
    run rank(2)
  }
}
