#define N 3
#define TIMES 3

byte pad[N * N * 2];  /* and at * 2 + count % 2 */
byte came[N];

inline meet(me) {
  mine++;
  for (i : 0 .. N - 1) {
    pad[(i * N + me) * 2 + mine % 2] = mine
  }
  for (i : 0 .. N - 1) {
    pad[(me * N + i) * 2 + mine % 2] == mine
  }
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
