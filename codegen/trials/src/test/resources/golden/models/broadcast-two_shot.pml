/* broadcast two_shot
 * 3 ranks. x_r1[2] is slot 2 of rank 1's buffer x. */

#define ROUNDS 2
#define tag(step) (round * 2 + step)

byte x_r0[2], x_r1[2], x_r2[2];
byte y_r0[2], y_r1[2], y_r2[2];
byte arrived_all0, passed_all0;

/* The last to come lets all go on, and the barrier is as new. */
inline meet(arrived, passed, size) {
  d_step {
    met = passed;
    arrived++;
    if
    :: arrived == size -> arrived = 0; passed++
    :: else
    fi
  }
  passed != met
}

proctype rank0() {
  byte round, met;
  do
  :: round < ROUNDS ->
    d_step { x_r0[0] = tag(1); x_r0[1] = tag(1) };  /* write x */
    meet(arrived_all0, passed_all0, 3);
    assert(x_r0[0] == tag(1));
    assert(x_r0[1] == tag(1));
    y_r0[0] = tag(2);
    y_r0[1] = tag(2);
    meet(arrived_all0, passed_all0, 3);
    d_step { assert(y_r0[0] == tag(2)); assert(y_r0[1] == tag(2)) };  /* read y */
    round++
  :: else -> break
  od
}

proctype rank1() {
  byte round, met;
  do
  :: round < ROUNDS ->
    d_step { x_r1[0] = tag(1); x_r1[1] = tag(1) };  /* write x */
    meet(arrived_all0, passed_all0, 3);
    assert(x_r0[0] == tag(1));
    y_r2[0] = tag(2);
    assert(x_r0[0] == tag(1));
    y_r1[0] = tag(2);
    meet(arrived_all0, passed_all0, 3);
    d_step { assert(y_r1[0] == tag(2)); assert(y_r1[1] == tag(2)) };  /* read y */
    round++
  :: else -> break
  od
}

proctype rank2() {
  byte round, met;
  do
  :: round < ROUNDS ->
    d_step { x_r2[0] = tag(1); x_r2[1] = tag(1) };  /* write x */
    meet(arrived_all0, passed_all0, 3);
    assert(x_r0[1] == tag(1));
    y_r1[1] = tag(2);
    assert(x_r0[1] == tag(1));
    y_r2[1] = tag(2);
    meet(arrived_all0, passed_all0, 3);
    d_step { assert(y_r2[0] == tag(2)); assert(y_r2[1] == tag(2)) };  /* read y */
    round++
  :: else -> break
  od
}

init {
  atomic {
    run rank0();
    run rank1();
    run rank2();
    skip
  }
}
