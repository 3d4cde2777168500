package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;

/**
 * Collectives of all ranks that become one, where one of them was: so the order of those that stay
 * is the same on every rank.
 *
 * @param members indices of collectives, in order
 * @param anchor the one of them whose position they take
 */
record Bucket(ImmutableList<Integer> members, int anchor) {}
