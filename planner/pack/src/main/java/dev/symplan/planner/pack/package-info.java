/** Offsets for buffers of known lifetimes. */
@NullMarked
package dev.symplan.planner.pack;

import org.jspecify.annotations.NullMarked;
