/* An all_reduce in place by slices that ranks push, and ops that write over its rows.
 * Two ranks of two blocks. A slice has a row for each block; x(r, s, b) is such a row of
 * slice s in the memory of rank r. Each slot of a workspace holds such a row. */

#define RANKS 2
#define BLOCKS 2
#define ROUNDS 3
#define x(r, s, b) rows[((r) * RANKS + (s)) * BLOCKS + (b)]
#define GIVE 0
#define REDUCE 1
#define of(k, h, r, b) ((((k) * 2 + (h)) * RANKS + (r)) * BLOCKS + (b))
#define GIVEN (2 * round + 1)
#define DONE (2 * round + 2)

byte rows[8];
byte slots[16];
byte launched[2];
byte ended[2];

inline send(kind, part, to, at) {
  assert(slots[of(kind, part, to, at)] == 0);
  slots[of(kind, part, to, at)] = 1;
}

inline take(kind, part, to, at) {
  slots[of(kind, part, to, at)] == 1;
  slots[of(kind, part, to, at)] = 0;
}

proctype block(byte r, b) {
  byte round;
  byte half;
  do
  :: round < ROUNDS ->
    launched[r] > round;
    half = round % 2;
    assert(x(r, 1 - r, b) == GIVEN);
    send(GIVE, half, 1 - r, b);
    take(GIVE, half, r, b);
    assert(x(r, r, b) == GIVEN);
    send(REDUCE, half, 1 - r, b);
    x(r, r, b) = DONE;
    take(REDUCE, half, r, b);
    x(r, 1 - r, b) = DONE;
    ended[r]++;
    round++
  :: else -> break
  od
}

proctype rank(byte r) {
  byte round;
  do
  :: round < ROUNDS ->
    d_step {
      x(r, 0, 0) = GIVEN; x(r, 0, 1) = GIVEN; x(r, 1, 0) = GIVEN; x(r, 1, 1) = GIVEN
    };
    launched[r]++;
    ended[r] == BLOCKS * (round + 1);
    assert(x(r, 0, 0) == DONE && x(r, 0, 1) == DONE && x(r, 1, 0) == DONE && x(r, 1, 1) == DONE);
    round++
  :: else -> break
  od
}

init {
  atomic {
    run rank(0); run rank(1);
    run block(0, 0); run block(0, 1); run block(1, 0); run block(1, 1)
  }
}
