/* all_reduce one_shot_push
 * 3 ranks. A packet is the number of its collective. */

#define N 3
#define COLLECTIVES 4
#define HALF (c % 2)
#define PACKETS (1 + c % 2)
#define slot(round, to, from, p) ((((HALF * 1 + round) * N + to) * N + from) * 2 + p)

byte at[36];

proctype rank0() {
  byte c, p;
  do
  :: c < COLLECTIVES ->
    /* send */
    for (p : 0 .. PACKETS - 1) {
      at[slot(0, 1, 0, p)] = c + 1;
      at[slot(0, 2, 0, p)] = c + 1;
    }
    /* receive */
    for (p : 0 .. PACKETS - 1) {
      atomic { at[slot(0, 0, 1, p)] != 0 -> assert(at[slot(0, 0, 1, p)] == c + 1) };
      atomic { at[slot(0, 0, 2, p)] != 0 -> assert(at[slot(0, 0, 2, p)] == c + 1) };
    }
    /* the end */
    for (p : 0 .. PACKETS - 1) {
      at[slot(0, 0, 1, p)] = 0;
      at[slot(0, 0, 2, p)] = 0;
    }
    c++
  :: else -> break
  od
}

proctype rank1() {
  byte c, p;
  do
  :: c < COLLECTIVES ->
    /* send */
    for (p : 0 .. PACKETS - 1) {
      at[slot(0, 2, 1, p)] = c + 1;
      at[slot(0, 0, 1, p)] = c + 1;
    }
    /* receive */
    for (p : 0 .. PACKETS - 1) {
      atomic { at[slot(0, 1, 2, p)] != 0 -> assert(at[slot(0, 1, 2, p)] == c + 1) };
      atomic { at[slot(0, 1, 0, p)] != 0 -> assert(at[slot(0, 1, 0, p)] == c + 1) };
    }
    /* the end */
    for (p : 0 .. PACKETS - 1) {
      at[slot(0, 1, 2, p)] = 0;
      at[slot(0, 1, 0, p)] = 0;
    }
    c++
  :: else -> break
  od
}

proctype rank2() {
  byte c, p;
  do
  :: c < COLLECTIVES ->
    /* send */
    for (p : 0 .. PACKETS - 1) {
      at[slot(0, 0, 2, p)] = c + 1;
      at[slot(0, 1, 2, p)] = c + 1;
    }
    /* receive */
    for (p : 0 .. PACKETS - 1) {
      atomic { at[slot(0, 2, 0, p)] != 0 -> assert(at[slot(0, 2, 0, p)] == c + 1) };
      atomic { at[slot(0, 2, 1, p)] != 0 -> assert(at[slot(0, 2, 1, p)] == c + 1) };
    }
    /* the end */
    for (p : 0 .. PACKETS - 1) {
      at[slot(0, 2, 0, p)] = 0;
      at[slot(0, 2, 1, p)] = 0;
    }
    c++
  :: else -> break
  od
}

init {
  atomic {
    run rank0();
    run rank1();
    run rank2()
  }
}
