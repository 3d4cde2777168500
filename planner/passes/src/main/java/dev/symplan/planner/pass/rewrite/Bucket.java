package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;

/**
 * Collectives of all ranks that become one, in the place of one of them: so the order of those that
 * stay is the same on every rank.
 *
 * @param members indices of collectives, in order
 * @param anchor the one of them whose place they take
 */
record Bucket(ImmutableList<Integer> members, int anchor) {}
