/* Three collectives between one start and one end: all they read is written before.
 * 2 ranks. x_r1[2] is slot 2 of rank 1's buffer x. */

#define ROUNDS 2
#define tag(step) (round * 6 + step)

byte a_r0[1], a_r1[1];
byte b_r0[1], b_r1[1];
byte c_r0[1], c_r1[1];
byte x_r0[1], x_r1[1];
byte y_r0[2], y_r1[2];
byte z_r0[1], z_r1[1];
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
    d_step { a_r0[0] = tag(1) };  /* write a */
    d_step { b_r0[0] = tag(2) };  /* write b */
    d_step { c_r0[0] = tag(3) };  /* write c */
    meet(arrived_all0, passed_all0, 2);
    assert(a_r0[0] == tag(1));
    assert(a_r1[0] == tag(1));
    x_r0[0] = tag(4);
    assert(b_r0[0] == tag(2));
    y_r1[0] = tag(5);
    assert(b_r0[0] == tag(2));
    y_r0[0] = tag(5);
    assert(c_r0[0] == tag(3));
    assert(c_r1[0] == tag(3));
    z_r0[0] = tag(6);
    meet(arrived_all0, passed_all0, 2);
    d_step { assert(x_r0[0] == tag(4)) };  /* read x */
    d_step { assert(y_r0[0] == tag(5)); assert(y_r0[1] == tag(5)) };  /* read y */
    d_step { assert(z_r0[0] == tag(6)) };  /* read z */
    round++
  :: else -> break
  od
}

proctype rank1() {
  byte round, met;
  do
  :: round < ROUNDS ->
    d_step { a_r1[0] = tag(1) };  /* write a */
    d_step { b_r1[0] = tag(2) };  /* write b */
    d_step { c_r1[0] = tag(3) };  /* write c */
    meet(arrived_all0, passed_all0, 2);
    assert(a_r0[0] == tag(1));
    assert(a_r1[0] == tag(1));
    x_r1[0] = tag(4);
    assert(b_r1[0] == tag(2));
    y_r0[1] = tag(5);
    assert(b_r1[0] == tag(2));
    y_r1[1] = tag(5);
    assert(c_r0[0] == tag(3));
    assert(c_r1[0] == tag(3));
    z_r1[0] = tag(6);
    meet(arrived_all0, passed_all0, 2);
    d_step { assert(x_r1[0] == tag(4)) };  /* read x */
    d_step { assert(y_r1[0] == tag(5)); assert(y_r1[1] == tag(5)) };  /* read y */
    d_step { assert(z_r1[0] == tag(6)) };  /* read z */
    round++
  :: else -> break
  od
}

init {
  atomic {
    run rank0();
    run rank1();
    skip
  }
}
