#define N 3
#define TIMES 3

bit pad[N * N];  /* slot of rank r for what rank s signals at r * N + s */
byte came[N];

inline meet(me) {
  for (i : 0 .. N - 1) {
    atomic { pad[i * N + me] == 0 -> pad[i * N + me] = 1 }
  }
  for (i : 0 .. N - 1) {
    atomic { pad[me * N + i] == 1 -> pad[me * N + i] = 0 }
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
