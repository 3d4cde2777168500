package dev.symplan.planner.pack;

/**
 * A stretch of offsets that items do not touch: between two arenas that are seen as one. What lies
 * below belongs to the first arena, what lies above to the second.
 *
 * @param begin the first arena's bytes
 * @param end the second arena's offset 0: a multiple of every item's alignment
 */
record Gap(long begin, long end) {
  /** One arena only. */
  static final Gap NONE = new Gap(0, 0);
}
