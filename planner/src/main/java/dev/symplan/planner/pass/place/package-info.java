/** Passes that put ops on streams and tensors into arenas. */
@NullMarked
package dev.symplan.planner.pass.place;

import org.jspecify.annotations.NullMarked;
