/**
 * How long a step of a plan takes on the hosts of a job: ranks wait for each other, and collectives
 * that are on the same rail at once share it. Ranks that cannot differ are simulated once.
 */
@NullMarked
package dev.symplan.planner.simulate;

import org.jspecify.annotations.NullMarked;
