/** One process for each rank: who started it, and how the processes find and watch each other. */
@NullMarked
package dev.symplan.runtime.launch;

import org.jspecify.annotations.NullMarked;
