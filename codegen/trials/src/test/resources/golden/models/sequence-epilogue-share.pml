/* Ops between what a reduce_scatter gives a rank and its end, and the all_gather of it.
 * 2 ranks. x_r1[2] is slot 2 of rank 1's buffer x. */

#define ROUNDS 2
#define tag(step) (round * 4 + step)

byte a_r0[2], a_r1[2];
byte b_r0[1], b_r1[1];
byte c_r0[1], c_r1[1];
byte d_r0[2], d_r1[2];
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
    d_step { a_r0[0] = tag(1); a_r0[1] = tag(1) };  /* write a */
    meet(arrived_all0, passed_all0, 2);
    assert(a_r0[0] == tag(1));
    assert(a_r1[0] == tag(1));
    b_r0[0] = tag(2);
    d_step { assert(b_r0[0] == tag(2)) };  /* read b */
    d_step { c_r0[0] = tag(3) };  /* write c */
    meet(arrived_all0, passed_all0, 2);
    meet(arrived_all0, passed_all0, 2);
    assert(c_r0[0] == tag(3));
    d_r1[0] = tag(4);
    assert(c_r0[0] == tag(3));
    d_r0[0] = tag(4);
    meet(arrived_all0, passed_all0, 2);
    d_step { assert(d_r0[0] == tag(4)); assert(d_r0[1] == tag(4)) };  /* read d */
    round++
  :: else -> break
  od
}

proctype rank1() {
  byte round, met;
  do
  :: round < ROUNDS ->
    d_step { a_r1[0] = tag(1); a_r1[1] = tag(1) };  /* write a */
    meet(arrived_all0, passed_all0, 2);
    assert(a_r0[1] == tag(1));
    assert(a_r1[1] == tag(1));
    b_r1[0] = tag(2);
    d_step { assert(b_r1[0] == tag(2)) };  /* read b */
    d_step { c_r1[0] = tag(3) };  /* write c */
    meet(arrived_all0, passed_all0, 2);
    meet(arrived_all0, passed_all0, 2);
    assert(c_r1[0] == tag(3));
    d_r0[1] = tag(4);
    assert(c_r1[0] == tag(3));
    d_r1[1] = tag(4);
    meet(arrived_all0, passed_all0, 2);
    d_step { assert(d_r1[0] == tag(4)); assert(d_r1[1] == tag(4)) };  /* read d */
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
